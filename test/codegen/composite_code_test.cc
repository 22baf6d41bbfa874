// Composites of the dialect and their derivatives, as clusters have them: code for CPUs and GPUs against the
// same bodies in f64. That the bodies are right is for test/gradients to say.
#include <algorithm>
#include <cmath>

#include "compiler/autodiff/passes.h"
#include "compiler/cluster/passes.h"
#include "compiler/codegen/cluster_body.h"
#include "compiler/codegen/testing/code_test.h"
#include "compiler/composites/passes.h"
#include "dialects/ft/composites.h"
#include "mlir/Pass/PassManager.h"
#include "test/codegen/emulated_kernel.h"

namespace ft::compiler::testing {
namespace {

using namespace mlir;
using mlir::ft::CallOp;

constexpr Extents kExtents[] = {{1, 2},     {3, 17},   {5, 771},   {37, 83},   {70, 768},
                                {33, 1030}, {3, 2056}, {2, 16394}, {1, 40000}, {257, 9}};

struct Composite {
  const char* op;  // of %x and others: $M whole, $C of a number a column
  std::vector<std::pair<std::string, std::string>> others;  // names and shapes
  double ulps;  // of a result's type at the largest result, which what cancels is measured by
  std::string whole = "$M";
  const char* dims = "[0, 1]";
};

const Composite kComposites[] = {
    {"ft.layer_norm %x, %w, %b eps 1.0e-5 : tensor<$Mxf32>, tensor<$Cxf32>, tensor<$Cxf32>",
     {{"w", "$C"}, {"b", "$C"}},
     32},
    {"ft.rms_norm %x, %w eps 1.0e-5 : tensor<$Mxf32>, tensor<$Cxf32>", {{"w", "$C"}}, 32},
    {"ft.gelu %x approximate \"tanh\" : tensor<$Mxf32>", {}, 8},
    {"ft.gelu %x approximate \"none\" : tensor<$Mxf32>", {}, 8},
    {"ft.swiglu %x, %u : tensor<$Mxf32>", {{"u", "$M"}}, 8},
    {"ft.softmax %x : tensor<$Mxf32>", {}, 8},
};

class CompositeCodeTest : public CodeTest {
 protected:
  // A module with the composite and its derivative, and a training step that calls both.
  func::FuncOp differentiated(const Composite& composite, Extents extents) {
    std::vector<std::pair<std::string, std::string>> all = composite.others;
    all.insert(all.begin(), {{"x", composite.whole}, {"dy", composite.whole}});
    std::string parameters, gets;
    for (const auto& [name, shape] : all) {
      const std::string type = "tensor<" + shape + "xf32>";
      parameters += "ft.parameter @" + name + " : " + type + " = #ft.init<normal, 1.0>\n";
      gets += "%" + name + " = ft.get @" + name + " : " + type + "\n";
    }
    parse("func.func @forward(%i: tensor<1xi32>, %j: tensor<1xi32>) -> tensor<f32> {\n" + gets +
              "%y = " + composite.op + "\n%p = ft.mul %y, %dy : tensor<" + composite.whole +
              "xf32>\n%s = ft.reduce \"sum\" %p over " + composite.dims + " : tensor<" + composite.whole +
              "xf32> -> tensor<f32>\n"
              "return %s : tensor<f32>\n}\n" +
              parameters,
          extents);
    if (!module || !run({createOutlineCompositesPass, mlir::ft::createAutodiffPass})) return {};
    return module->lookupSymbol<func::FuncOp>(mlir::ft::kTrainStepFunction);
  }

  // The cluster that the call becomes where activations have this element type; null where it is several.
  func::FuncOp clusterOf(CallOp call, Type element) {
    const auto typed = [&](TypeRange types, ArrayRef<int64_t> inF32) {
      SmallVector<Type> result;
      for (auto [i, type] : llvm::enumerate(types)) {
        auto tensor = cast<RankedTensorType>(type);
        result.push_back(llvm::is_contained(inF32, int64_t(i)) ? type : Type(tensor.clone(element)));
      }
      return result;
    };
    SmallVector<Type> inputs = typed(call.getInputs().getTypes(), {}),
                      outputs = typed(call.getResultTypes(),
                                      call.getParameterGrads().value_or(ArrayRef<int64_t>()));
    auto program =
        func::FuncOp::create(call.getLoc(), "program", FunctionType::get(&context, inputs, outputs));
    OpBuilder builder = OpBuilder::atBlockEnd(program.addEntryBlock());
    auto alone = CallOp::create(builder, call.getLoc(), outputs, call.getCalleeAttr(), program.getArguments(),
                                call.getParameterGradsAttr(), DenseI64ArrayAttr());
    mlir::ft::setPhase(alone, mlir::ft::kPhaseBackward);
    func::ReturnOp::create(builder, call.getLoc(), alone.getOutputs());
    call->getParentOfType<func::FuncOp>().erase();
    module->push_back(program);
    const auto formClusters = [] { return createFormClustersPass(); };
    if (!run({createExpandCompositesPass, formClusters})) return {};
    auto cluster = dyn_cast<mlir::ft::ClusterOp>(program.front().front());
    return cluster && cluster->getNextNode() == program.front().getTerminator() ? mlir::ft::bodyOf(cluster)
                                                                                : func::FuncOp();
  }

  void check(const Composite& composite, Extents extents, Type element, bool gradient) {
    func::FuncOp step = differentiated(composite, extents);
    ASSERT_TRUE(step);
    SmallVector<CallOp> calls(step.getOps<CallOp>());
    ASSERT_EQ(calls.size(), 2u);
    func::FuncOp body = clusterOf(calls[gradient], element);
    ASSERT_TRUE(body) << "it is not one cluster";
    std::vector<HostTensor> inputs;
    for (auto [i, type] : llvm::enumerate(body.getArgumentTypes())) {
      inputs.emplace_back(cast<RankedTensorType>(type));
      inputs[i].values = numbers(inputs[i].values.size(), 31 * i + 7);
      for (double& value : inputs[i].values) value = rounded(value, inputs[i].element());
    }
    const std::vector<HostTensor> expected = evaluate(body, inputs);
    for (const auto& [level, results] : CodeTest::run(body, inputs))
      compare(results, expected, composite.ulps, nameOf(level).str());
    compare(runEmulated(body, inputs), expected, composite.ulps, "GPU");
  }

 private:
  using MakePass = std::unique_ptr<Pass> (*)();

  bool run(std::initializer_list<MakePass> passes) {
    PassManager manager(&context);
    for (MakePass make : passes) manager.addPass(make());
    return succeeded(manager.run(*module));
  }

  static void compare(const std::vector<HostTensor>& got, const std::vector<HostTensor>& expected,
                      double ulps, const std::string& where) {
    ASSERT_EQ(got.size(), expected.size());
    for (size_t r = 0; r < got.size(); ++r) {
      double largest = 0;
      for (double value : expected[r].values) largest = std::max(largest, std::abs(value));
      for (size_t i = 0; i < got[r].values.size(); ++i) {
        const double off = std::abs(got[r].values[i] - expected[r].values[i]);
        ASSERT_LE(off, ulps * ulpOf(largest, got[r].element()))
            << where << ", result " << r << ", element " << i << ": " << got[r].values[i] << ", not "
            << expected[r].values[i];
      }
    }
  }
};

// Every pair of composite, direction, extents and type of elements.
TEST_F(CompositeCodeTest, CodeComputesWhatBodiesSay) {
  const Type elements[] = {Float32Type::get(&context), BFloat16Type::get(&context),
                           Float16Type::get(&context)};
  size_t next = 0;
  for (const Composite& composite : kComposites)
    for (bool gradient : {false, true}) {
      for (Extents extents : kExtents) {
        SCOPED_TRACE(std::string(composite.op) + (gradient ? " gradient " : " ") +
                     std::to_string(extents.rows) + "x" + std::to_string(extents.columns));
        check(composite, extents, elements[next++ % 3], gradient);
      }
    }
}

// Halves of heads are read and written in one pass, there and back, by a table that does not depend on the
// sequence.
TEST_F(CompositeCodeTest, RotationsAreOneCluster) {
  const Composite one = {"ft.rope %x heads 1 base 10.0 : tensor<3x$Mxf32>", {}, 4, "3x$M", "[0, 1, 2]"};
  const Composite three = {"ft.rope %x heads 3 base 10.0 : tensor<3x$Mxf32>", {}, 4, "3x$M", "[0, 1, 2]"};
  const std::pair<Composite, Extents> shapes[] = {
      {one, {1, 4}}, {one, {5, 34}}, {three, {70, 96}}, {three, {9, 384}}, {three, {33, 780}}};
  for (const auto& [composite, extents] : shapes)
    for (bool gradient : {false, true})
      for (Type element : {Type(Float32Type::get(&context)), Type(BFloat16Type::get(&context)),
                           Type(Float16Type::get(&context))}) {
        SCOPED_TRACE(std::to_string(extents.rows) + "x" + std::to_string(extents.columns) +
                     (gradient ? " gradient" : ""));
        check(composite, extents, element, gradient);
      }
}

// A row is read once for each sum that waits for another, and for the results.
TEST_F(CompositeCodeTest, NormsReadARowAsOftenAsTheyMust) {
  for (const auto& [index, levels] : {std::pair(0, 3), std::pair(1, 2)}) {
    for (bool gradient : {false, true}) {
      func::FuncOp step = differentiated(kComposites[index], {64, 768});
      SmallVector<CallOp> calls(step.getOps<CallOp>());
      func::FuncOp body = clusterOf(calls[gradient], Float32Type::get(&context));
      ASSERT_TRUE(body);
      FailureOr<ClusterBody> cluster = clusterBodyOf(body);
      ASSERT_TRUE(succeeded(cluster));
      const std::vector<int> sums = LevelsOf(*cluster);  // before each value
      EXPECT_EQ(*std::max_element(sums.begin(), sums.end()) + 1, levels)
          << kComposites[index].op << " " << gradient;
    }
  }
}

}  // namespace
}  // namespace ft::compiler::testing
