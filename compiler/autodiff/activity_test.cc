#include "compiler/autodiff/activity.h"

#include <gtest/gtest.h>

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"

namespace mlir::ft {
namespace {

// Ops carry the discardable attribute `id`, by which the tests find them.
constexpr const char *kGraph = R"(
  ft.parameter @trained : tensor<4x3xf32> = #ft.init<normal, 1.0>
  ft.parameter @frozen : tensor<3xf32> = #ft.init<normal, 1.0> {frozen}
  ft.parameter @aside : tensor<4x3xf32> = #ft.init<normal, 1.0>
  ft.parameter @unused : tensor<3xf32> = #ft.init<normal, 1.0>
  func.func @forward(%tokens: tensor<4xi32>, %targets: tensor<4xi32>) -> tensor<f32> {
    %t = ft.get @trained {id = "t"} : tensor<4x3xf32>
    %f = ft.get @frozen {id = "f"} : tensor<3xf32>
    %a = ft.get @aside {id = "a"} : tensor<4x3xf32>
    %rng = ft.input "rng" {id = "rng"} : tensor<3xi64>
    %index = ft.sample_bits %t, %rng stream 1 {id = "index"} : (tensor<4x3xf32>, tensor<3xi64>) -> tensor<4xi32>
    %scaled = ft.scale %f, 2.0 {id = "scaled"} : tensor<3xf32>
    %dead = ft.mul %a, %t {id = "dead"} : tensor<4x3xf32>, tensor<4x3xf32>
    %first = ft.mul %t, %scaled {id = "first"} : tensor<4x3xf32>, tensor<3xf32>
    %second = ft.add %first, %t {id = "second"} : tensor<4x3xf32>, tensor<4x3xf32>
    %loss = ft.cross_entropy %second, %index {id = "loss"} : (tensor<4x3xf32>, tensor<4xi32>) -> tensor<f32>
    return %loss : tensor<f32>
  })";

class ActivityTest : public ::testing::Test {
protected:
  ActivityTest() : context(MLIRContext::Threading::DISABLED) {
    context.loadDialect<FtDialect, func::FuncDialect>();
    module = parseSourceString<ModuleOp>(kGraph, &context);
    block = &module->lookupSymbol<func::FuncOp>("forward").getBody().front();
  }

  Operation *op(StringRef id) {
    for (Operation &candidate : *block)
      if (candidate.getAttrOfType<StringAttr>("id") == StringAttr::get(&context, id))
        return &candidate;
    return nullptr;
  }
  Activity activityOf(Value loss) { return Activity(*block, trainedValues(*module, *block), loss); }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  Block *block = nullptr;
};

TEST_F(ActivityTest, ValuesBetweenATrainedParameterAndTheLossAreActive) {
  Activity activity = activityOf(op("loss")->getResult(0));
  for (const char *id : {"t", "first", "second", "loss"})
    EXPECT_TRUE(activity.isActive(op(id)->getResult(0))) << id;
  // Frozen, aside of the loss, or integers.
  for (const char *id : {"f", "a", "rng", "index", "scaled", "dead"})
    EXPECT_FALSE(activity.isActive(op(id)->getResult(0))) << id;
}

TEST_F(ActivityTest, RulesApplyOnlyWhereAnOperandIsActiveToo) {
  Activity activity = activityOf(op("loss")->getResult(0));
  for (const char *id : {"first", "second", "loss"})
    EXPECT_TRUE(activity.isActive(op(id))) << id;
  for (const char *id : {"t", "index", "scaled", "dead"})
    EXPECT_FALSE(activity.isActive(op(id))) << id;
}

TEST_F(ActivityTest, TheFirstUseInProgramOrderContributesLast) {
  Activity activity = activityOf(op("loss")->getResult(0));
  EXPECT_EQ(activity.finalContributor("trained"),
            op("first")); // neither "index" nor "dead", which come before
  for (const char *parameter : {"frozen", "aside", "unused"})
    EXPECT_EQ(activity.finalContributor(parameter), nullptr);
}

TEST_F(ActivityTest, ALossWithoutTrainedParametersHasNoActiveValues) {
  Activity activity = activityOf(op("scaled")->getResult(0));
  for (Operation &candidate : block->without_terminator()) {
    EXPECT_FALSE(activity.isActive(&candidate));
    for (Value result : candidate.getResults())
      EXPECT_FALSE(activity.isActive(result));
  }
}

} // namespace
} // namespace mlir::ft
