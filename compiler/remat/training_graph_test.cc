#include "compiler/remat/training_graph.h"

#include <gtest/gtest.h>

#include "mlir/Parser/Parser.h"

namespace ft::compiler {
namespace {

using namespace mlir;

// Ops carry the discardable attribute `id`, by which the tests find them. Layer a: a1, a2; layer b: b1, b2;
// the loss in c.
constexpr const char *kGraph = R"(
  func.func @train_step(%x: tensor<4x8xf32>, %targets: tensor<4xi32>) -> tensor<f32> {
    %a1 = ft.silu %x {id = "a1", layer = "a", phase = "forward"} : tensor<4x8xf32>
    %a2 = ft.mul %a1, %x {id = "a2", layer = "a", phase = "forward"} : tensor<4x8xf32>, tensor<4x8xf32>
    %b1 = ft.silu %a2 {id = "b1", layer = "b", phase = "forward"} : tensor<4x8xf32>
    %b2 = ft.mul %b1, %a2 {id = "b2", layer = "b", phase = "forward"} : tensor<4x8xf32>, tensor<4x8xf32>
    %loss = ft.reduce "sum" %b2 over [0, 1] {id = "loss", layer = "c", phase = "forward"} : tensor<4x8xf32> -> tensor<f32>
    %one = ft.fill 1.0 {layer = "c", phase = "backward"} : tensor<f32>
    %d = ft.maximum %b2, %one {layer = "c", phase = "backward"} : tensor<4x8xf32>, tensor<f32>
    %db1 = ft.mul %d, %a2 {layer = "b", phase = "backward"} : tensor<4x8xf32>, tensor<4x8xf32>
    %db2 = ft.mul %d, %b1 {layer = "b", phase = "backward"} : tensor<4x8xf32>, tensor<4x8xf32>
    return %loss : tensor<f32>
  })";

class TrainingGraphTest : public ::testing::Test {
protected:
  TrainingGraphTest() : context(MLIRContext::Threading::DISABLED) {
    context.loadDialect<mlir::ft::FtDialect, func::FuncDialect>();
    module = parseSourceString<ModuleOp>(kGraph, &context);
    function = module->lookupSymbol<func::FuncOp>("train_step");
  }

  Operation *op(StringRef id) {
    for (Operation &candidate : function.getBody().front())
      if (auto attr = candidate.getAttrOfType<StringAttr>("id"); attr && attr == id)
        return &candidate;
    return nullptr;
  }

  std::vector<std::string> ids(ArrayRef<Operation *> ops) {
    std::vector<std::string> result;
    for (Operation *each : ops)
      result.push_back(each->getAttrOfType<StringAttr>("id").str());
    return result;
  }

  using Ids = std::vector<std::string>;

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  func::FuncOp function;
};

TEST_F(TrainingGraphTest, RunsAreStretchesOfOneLayer) {
  TrainingGraph graph(function);
  ASSERT_EQ(graph.runs().size(), 3u);
  EXPECT_EQ(ids(graph.runs()[0].ops), (Ids{"a1", "a2"}));
  EXPECT_EQ(ids(graph.runs()[2].ops), (Ids{"loss"}));
  EXPECT_EQ(graph.runOf(op("b1")), 1u);
  EXPECT_TRUE(graph.hasBackward());
}

// The optimizer moves an input of layer b to the front of @train_step, not of @train_micro: choices are by
// number.
TEST_F(TrainingGraphTest, RunsAreTheSameWhereverInputsStand) {
  OpBuilder builder(op("a1"));
  auto type = RankedTensorType::get({3}, builder.getI64Type());
  Operation *rng = mlir::ft::InputOp::create(builder, function.getLoc(), type, "rng");
  mlir::ft::setLayer(rng, builder.getStringAttr("b"));
  mlir::ft::setPhase(rng, mlir::ft::kPhaseForward);
  for (StringRef before : {"a1", "b2"}) {
    rng->moveBefore(op(before));
    TrainingGraph graph(function);
    ASSERT_EQ(graph.runs().size(), 3u);
    EXPECT_EQ(ids(graph.runs()[0].ops), (Ids{"a1", "a2"}));
    EXPECT_EQ(ids(graph.runs()[1].ops), (Ids{"b1", "b2"}));
  }
}

TEST_F(TrainingGraphTest, SavedIsWhatBackwardReads) {
  EXPECT_FALSE(TrainingGraph::isSaved(op("a1")->getResult(0)));
  EXPECT_TRUE(TrainingGraph::isSaved(op("a2")->getResult(0)));
  EXPECT_TRUE(TrainingGraph::isSaved(op("b1")->getResult(0)));
}

TEST_F(TrainingGraphTest, ReadOutsideLooksAtRunsOfForward) {
  TrainingGraph graph(function);
  auto isFirst = [](unsigned run) { return run == 0; };
  EXPECT_FALSE(graph.isReadOutside(op("a1"), isFirst));
  EXPECT_TRUE(graph.isReadOutside(op("a2"), isFirst));
}

TEST_F(TrainingGraphTest, NeededIsWhatBackwardReadsAndWhatThatIsMadeOf) {
  TrainingGraph graph(function);
  EXPECT_EQ(ids(graph.neededOps({})), (Ids{"a2", "b1", "b2"}));
  EXPECT_EQ(ids(graph.neededOps({op("a2")})), (Ids{"a1", "a2", "b1", "b2"}));
  EXPECT_EQ(ids(graph.neededAtOnce({})), (Ids{"b2"}));
  EXPECT_EQ(ids(graph.neededAtOnce({op("b2")})), (Ids{"a2", "b1", "b2"}));
}

// Backward visits the runs in reverse, whatever part of them is asked for.
TEST_F(TrainingGraphTest, BackwardBelongsToRuns) {
  TrainingGraph graph(function);
  auto runs = [&](unsigned begin, unsigned end) {
    std::vector<unsigned> result;
    for (auto [op, run] : graph.backwardOf(begin, end))
      result.push_back(run);
    return result;
  };
  using Runs = std::vector<unsigned>;
  EXPECT_EQ(runs(0, 3), (Runs{2, 2, 1, 1}));
  EXPECT_EQ(runs(1, 2), (Runs{1, 1}));
  EXPECT_EQ(runs(2, 3), (Runs{2, 2}));
  EXPECT_EQ(runs(0, 1), Runs{}); // nothing of layer a has a derivative here
}

// An op of another layer stays with the current run when none below has its layer.
TEST_F(TrainingGraphTest, StrangersInBackwardStayWithTheCurrentRun) {
  std::vector<Operation *> backward;
  for (Operation &each : function.getBody().front())
    if (isBackward(&each))
      backward.push_back(&each);
  mlir::ft::setLayer(backward[2], StringAttr::get(&context, "nowhere"));
  mlir::ft::setLayer(backward[3], StringAttr::get(&context, "a"));
  TrainingGraph graph(function);
  EXPECT_EQ(graph.backwardOf(2, 3).size(), 3u);
  EXPECT_EQ(graph.backwardOf(1, 2).size(), 0u);
  EXPECT_EQ(graph.backwardOf(0, 1).size(), 1u);
}

} // namespace
} // namespace ft::compiler
