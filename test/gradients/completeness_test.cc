// Walks all ops that the dialect registers: derivative, cost, CPU kernel, a case. An op that is added without
// one of them fails here.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "dialects/ft/dialect.h"
#include "dialects/ft/elementwise.h"
#include "runtime/base/elementwise.h"
#include "test/conformance/case.h"
#include "test/conformance/exact_kernels.h"
#include "test/gradients/gradient_check.h"
#include "test/support/reference.h"

namespace mlir::ft::test {
namespace {

// Ops without a derivative, and why they need none.
const std::map<std::string, std::string>& withoutDerivative() {
  const std::string structure = "names a parameter, an input or a unit; computes nothing";
  const std::string gradient = "is a gradient itself; second derivatives are not taken";
  const std::string step = "comes after differentiation";
  const std::string body = "its body has one";
  const std::string fusion = "is made after differentiation, of ops that have one";
  static const auto& reasons = *new std::map<std::string, std::string>{
      {"parameter", structure},
      {"unit", structure},
      {"get", "is where differentiation ends"},
      {"input", structure},
      {"call", "is differentiated by making the derivative of its callee"},
      {"softmax", body},
      {"cross_entropy", body},
      {"qk_norm", body},
      {"layer_norm", body},
      {"rms_norm", body},
      {"gelu", body},
      {"swiglu", body},
      {"rotate", body},
      {"rope", "is short for ops that have one"},
      {"rotary_table", "a constant"},
      {"dropout", body},
      {"sample_bits", body},
      {"bits_kl", body},
      {"random_bits", "gives integers"},
      {"fill", "a constant"},
      {"iota", "a constant"},
      {"embedding_grad", gradient},
      {"grouped_dot_grad", gradient},
      {"attention_grad", gradient},
      {"qkv_attention_grad", gradient},
      {"linear_cross_entropy_grad", gradient},
      {"linear_cross_entropy_loss_grad", gradient},
      {"binary_mapper_grad", gradient},
      {"gradient", step},
      {"pack", step},
      {"shard", step},
      {"gather", step},
      {"release", step},
      {"view", step},
      {"reduce_scatter", step},
      {"all_reduce", step},
      {"sum_squares", step},
      {"clip_coefficient", step},
      {"orthogonalize", step},
      {"distribute", step},
      {"collect", step},
      {"load_state", step},
      {"store_state", step},
      {"update", step},
      {"update_scalars", step},
      {"init", step},
      {"loss_scale", "is what backward begins with"},
      {"update_scaler", step},
      {"accumulate", step},
      {"accumulated", step},
      {"accumulator", step},
      {"fetch", step},
      {"refresh", step},
      {"offload", step},
      {"reload", step},
      {"cluster", fusion},
      {"matmul_gelu", fusion},
      {"matmul_gelu_grad", fusion},
      {"matmul_bias_grad", fusion},
      {"count_targets", "is of integers"},
      {"counted_mean", step},
      {"loss_count", "is evaluation's, which has no gradients"},
  };
  return reasons;
}

std::string shortName(OperationName name) { return name.stripDialect().str(); }

std::vector<RegisteredOperationName> allOps(MLIRContext& context) {
  std::vector<RegisteredOperationName> ops;
  for (RegisteredOperationName name : context.getRegisteredOperations())
    if (name.getDialectNamespace() == FtDialect::getDialectNamespace()) ops.push_back(name);
  return ops;
}

// Ops that a plan executes on a device; a call is expanded before, and what stops derivatives is dropped.
bool isComputed(RegisteredOperationName name) {
  return name.hasInterface<CostOpInterface>() && name.getTypeID() != TypeID::get<CallOp>() &&
         name.getTypeID() != TypeID::get<StopGradientOp>();
}

// The kernel that runs an op of a plan: elementwise ops, conversions, random bits and reductions are in
// clusters.
std::string kernelOf(OperationName op) {
  std::string name = shortName(op);
  bool isRow = std::any_of(std::begin(::ft::kElementwiseRows), std::end(::ft::kElementwiseRows),
                           [&](const ::ft::ElementwiseRow& row) { return row.name == name; });
  return isRow || name == "convert" || name == "random_bits" || name == "reduce" ? "cluster" : name;
}

// The ops that come before and after differentiation and have a cost.
constexpr const char* kOptimizerStep = R"(
  ft.unit @u {elements = 1024 : i64}
  ft.parameter @p : tensor<16x8xf32> = #ft.init<normal, 1.0> {offset = 0 : i64, unit = @u}
  func.func @eval_step(%loss: tensor<f32>, %targets: tensor<2x3xi32>) -> tensor<2xf32> {
    %sum = ft.loss_count %loss, %targets : (tensor<f32>, tensor<2x3xi32>) -> tensor<2xf32>
    return %sum : tensor<2xf32>
  }
  func.func @train_step(%g: tensor<16x8xf32>, %lr: tensor<f32>, %step: tensor<i64>, %rng: tensor<3xi64>,
                        %scaler: tensor<3xf32>, %targets: tensor<2x3xi32>) -> tensor<f32> {
    %seed = ft.loss_scale %scaler factor 0.5 : (tensor<3xf32>) -> tensor<f32>
    %flat = ft.pack %g at [@p] : (tensor<16x8xf32>) -> !ft.flat<@u, f32>
    %sum = ft.sum_squares %flat : (!ft.flat<@u, f32>) -> tensor<21xi64>
    %count, %share = ft.count_targets %targets of 6 : (tensor<2x3xi32>) -> (tensor<2xi64>, tensor<f32>)
    %mean, %factor = ft.counted_mean %count, %seed : (tensor<2xi64>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
    %norm, %c = ft.clip_coefficient %sum {max_norm = 1.0} : (tensor<21xi64>) -> (tensor<f32>, tensor<f32>)
    %s = ft.update_scalars %c, %lr, %step {formulas = "clip; lr", weight_decay = 0.1}
      : (tensor<f32>, tensor<f32>, tensor<i64>) -> tensor<2x2xf32>
    ft.update @u by @step(%flat, %s) states [] : !ft.flat<@u, f32>, tensor<2x2xf32>
    return %norm : tensor<f32>
  }
  func.func @weight(%x: tensor<6x4xbf16>, %dy: tensor<6x8xbf16>) {
    %0:2 = ft.matmul_bias_grad %x, %dy transpose_a beside @sum_rows partial_bytes [0, 0]
      : (tensor<6x4xbf16>, tensor<6x8xbf16>) -> (tensor<4x8xbf16>, tensor<8xbf16>)
    return
  }
  func.func private @sum_rows(%x: tensor<6x8xbf16>) -> tensor<8xbf16> attributes {ft.cluster} {
    %sum = ft.reduce "sum" %x over [0] : tensor<6x8xbf16> -> tensor<8xbf16>
    return %sum : tensor<8xbf16>
  }
  func.func private @step(%g: tensor<1024xf32>, %p: tensor<1024xf32>, %clip: tensor<f32>, %lr: tensor<f32>)
      -> tensor<1024xf32> attributes {ft.update} {
    return %p : tensor<1024xf32>
  })";

class Completeness : public ::testing::Test {
 protected:
  Completeness() : context(makeContext()) {}

  // Calls `visit` for every op of every gradient case, after both pipelines, and of an optimizer step.
  void visitAllCases(llvm::function_ref<void(Operation*)> visit) {
    for (const GraphCase& graph : allCases())
      for (Pipeline pipeline : {Pipeline::kPlain, Pipeline::kFused}) {
        OwningOpRef<ModuleOp> module = parseModule(*context, moduleText(graph));
        ASSERT_TRUE(module && differentiate(*module, pipeline)) << graph.name;
        module->walk(visit);
      }
    OwningOpRef<ModuleOp> module = parseModule(*context, kOptimizerStep);
    ASSERT_TRUE(module);
    module->walk(visit);
  }

  std::unique_ptr<MLIRContext> context;
};

TEST_F(Completeness, EveryOpHasADerivativeOrAReason) {
  ASSERT_GT(allOps(*context).size(), 40u);
  for (RegisteredOperationName name : allOps(*context)) {
    bool excused = withoutDerivative().contains(shortName(name));
    EXPECT_NE(name.hasInterface<DifferentiableOpInterface>(), excused)
        << name.getStringRef().str()
        << (excused ? " has a derivative: strike it from the list" : " has no derivative");
  }
}

// A model's batch is changed along what its ops say of their extents; a call says it by its callee.
TEST_F(Completeness, EveryDifferentiableOpSaysWhatOfItChangesWithTheBatch) {
  for (RegisteredOperationName name : allOps(*context))
    EXPECT_TRUE(!name.hasInterface<DifferentiableOpInterface>() || name.hasInterface<ExtentOpInterface>())
        << name.getStringRef().str() << " has no relateExtents";
}

TEST_F(Completeness, EveryComputedOpHasACpuKernel) {
  for (RegisteredOperationName name : allOps(*context)) {
    bool runs = name.hasInterface<DifferentiableOpInterface>() || name.hasInterface<KernelOpInterface>();
    EXPECT_TRUE(!runs || name.hasInterface<CostOpInterface>()) << name.getStringRef().str() << " has no cost";
    bool hasKernel = cpuKernels().Find(kernelOf(name)) != nullptr;
    EXPECT_TRUE(!isComputed(name) || hasKernel) << name.getStringRef().str() << " has no CPU kernel";
  }
}

TEST_F(Completeness, EveryComputedOpCostsBytes) {
  std::set<std::string> seen;
  visitAllCases([&](Operation* op) {
    auto cost = dyn_cast<CostOpInterface>(op);
    if (!cost) return;
    seen.insert(shortName(op->getName()));
    EXPECT_GT(cost.getBytes(), 0u) << op->getName().getStringRef().str();
  });
  for (RegisteredOperationName name : allOps(*context))
    EXPECT_TRUE(!isComputed(name) || seen.contains(shortName(name)))
        << name.getStringRef().str() << " is in no case";
}

TEST_F(Completeness, EveryComputedOpHasAConformanceCase) {
  std::set<std::string> covered;
  for (const ::ft::conformance::Case& testCase : ::ft::conformance::AllCases()) covered.insert(testCase.op);
  covered.insert(std::begin(::ft::kExactKernels), std::end(::ft::kExactKernels));
  for (RegisteredOperationName name : allOps(*context))
    EXPECT_TRUE(!isComputed(name) || covered.contains(kernelOf(name))) << name.getStringRef().str();
}

TEST_F(Completeness, EveryDifferentiableOpHasAGradientCaseAndAReference) {
  std::set<std::string> differentiated;
  for (const GraphCase& graph : allCases()) {
    OwningOpRef<ModuleOp> module = parseModule(*context, moduleText(graph));
    ASSERT_TRUE(module) << graph.name;
    module->walk([&](DifferentiableOpInterface op) { differentiated.insert(shortName(op->getName())); });
  }
  std::vector<std::string> list = Reference::supportedOps();
  std::set<std::string> references(list.begin(), list.end());
  for (RegisteredOperationName name : allOps(*context)) {
    if (!name.hasInterface<DifferentiableOpInterface>()) continue;
    EXPECT_TRUE(differentiated.contains(shortName(name)))
        << name.getStringRef().str() << " has no gradient case";
    EXPECT_TRUE(references.contains(shortName(name)))
        << name.getStringRef().str() << " has no float64 reference";
  }
}

}  // namespace
}  // namespace mlir::ft::test
