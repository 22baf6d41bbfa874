#include "test/gradients/gradient_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "compiler/autodiff/passes.h"
#include "compiler/cluster/passes.h"
#include "compiler/composites/passes.h"
#include "compiler/fuse/passes.h"
#include "dialects/ft/dialect.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "runtime/backends/cpu/register.h"
#include "test/support/reference.h"

namespace mlir::ft::test {
namespace {

constexpr double kStep = 1e-5;

// d loss / d element, by central differences around `parameters`.
double difference(Reference& reference, NamedArrays& parameters, const StepInputs& inputs, double& element) {
  const double kept = element;
  element = kept + kStep;
  double up = reference.loss(parameters, inputs);
  element = kept - kStep;
  double down = reference.loss(parameters, inputs);
  element = kept;
  return (up - down) / (2 * kStep);
}

double largest(const std::vector<double>& values) {
  double top = 0;
  for (double value : values) top = std::max(top, std::abs(value));
  return top;
}

// The differences for all trained parameters.
NamedArrays differences(const GraphCase& graph, Reference& reference, NamedArrays parameters,
                        const StepInputs& inputs) {
  NamedArrays expected;
  for (const ParameterSpec& spec : graph.parameters) {
    if (spec.frozen) continue;
    Array& array = parameters[spec.name];
    Array result(array.shape);
    for (int64_t i = 0; i < array.size(); ++i)
      result.data[i] = difference(reference, parameters, inputs, array.data[i]);
    expected[spec.name] = result;
  }
  return expected;
}

}  // namespace

std::unique_ptr<MLIRContext> makeContext() {
  auto context = std::make_unique<MLIRContext>(MLIRContext::Threading::DISABLED);
  context->loadDialect<FtDialect, func::FuncDialect>();
  return context;
}

OwningOpRef<ModuleOp> parseModule(MLIRContext& context, const std::string& text) {
  return parseSourceString<ModuleOp>(text, &context);
}

bool differentiate(ModuleOp module, Pipeline pipeline) {
  PassManager manager(module.getContext());
  bool fused = pipeline == Pipeline::kFused;
  if (fused) manager.addPass(createFuseLinearCrossEntropyPass());
  manager.addPass(::ft::compiler::createOutlineCompositesPass());
  manager.addPass(createAutodiffPass());
  manager.addPass(createVerifyAutodiffPass());
  if (fused) {
    manager.addPass(createFuseLossGradPass());
    manager.addPass(createCSEPass());
    manager.addPass(createCanonicalizerPass());
    manager.addPass(createFuseGeluPass());
    manager.addPass(createVerifyAutodiffPass());
  }
  manager.addPass(::ft::compiler::createExpandCompositesPass());
  manager.addPass(
      ::ft::compiler::createFormClustersPass({.clusterOps = fused ? int64_t{::ft::kMaxClusterValues} : 1}));
  return succeeded(manager.run(module));
}

const ::ft::KernelRegistry& cpuKernels() {
  static const auto& registry = *[] {
    auto* registry = new ::ft::KernelRegistry;
    ::ft::RegisterCpuKernels(*registry);
    return registry;
  }();
  return registry;
}

Array randomArray(Dims dims, uint64_t seed) {
  std::mt19937_64 random(seed);
  Array array(std::move(dims));
  for (double& value : array.data) value = float(double(random() >> 40) * 0x1p-23 - 1);
  return array;
}

Array randomIndices(Dims dims, int64_t limit, uint64_t seed) {
  std::mt19937_64 random(seed);
  Array array(std::move(dims));
  for (double& value : array.data) value = random() % limit;
  return array;
}

NamedArrays randomParameters(ModuleOp module, uint64_t seed) {
  NamedArrays arrays;
  for (auto parameter : module.getOps<ParameterOp>()) {
    auto type = cast<RankedTensorType>(parameter.getTypeAttr().getValue());
    arrays[parameter.getSymName().str()] = randomArray(type.getShape().vec(), ++seed);
  }
  return arrays;
}

StepInputs randomInputs(const GraphCase& graph, uint64_t seed) {
  StepInputs inputs;
  Dims targets = graph.result.empty() ? graph.targets : Dims(graph.result.begin(), graph.result.end() - 1);
  int64_t limit = graph.result.empty() ? graph.targetLimit : graph.result.back();
  inputs.tokens = randomIndices(graph.tokens, graph.tokenLimit, seed);
  inputs.targets = randomIndices(targets, limit, seed + 1);
  inputs.inputs["rng"] = Array({3});
  inputs.inputs["rng"].data = {1234, 5, 1};  // seed, step, rank
  return inputs;
}

absl::StatusOr<StepResult> runStep(ModuleOp module, const NamedArrays& parameters, const StepInputs& inputs) {
  return interpret(module.lookupSymbol<func::FuncOp>(kTrainStepFunction), cpuKernels(), parameters, inputs);
}

void checkGradients(const GraphCase& graph, Pipeline pipeline) {
  std::unique_ptr<MLIRContext> context = makeContext();
  OwningOpRef<ModuleOp> module = parseModule(*context, moduleText(graph));
  ASSERT_TRUE(module) << moduleText(graph);
  OwningOpRef<ModuleOp> step = module->clone();
  ASSERT_TRUE(differentiate(*step, pipeline));

  NamedArrays parameters = randomParameters(*module, 100);
  StepInputs inputs = randomInputs(graph, 7);
  absl::StatusOr<StepResult> result = runStep(*step, parameters, inputs);
  ASSERT_TRUE(result.ok()) << result.status().message();

  Reference reference(module->lookupSymbol<func::FuncOp>(kForwardFunction));
  double loss = reference.loss(parameters, inputs);
  EXPECT_NEAR(result->loss, loss, kTolerance * std::max(1.0, std::abs(loss)));
  NamedArrays expected = differences(graph, reference, parameters, inputs);
  double upstream = 0;
  for (const auto& [name, array] : expected) upstream = std::max(upstream, largest(array.data));
  for (const auto& [name, array] : expected) {
    ASSERT_TRUE(result->gradients.contains(name)) << name;
    const Array& gradient = result->gradients[name];
    ASSERT_EQ(gradient.size(), array.size());
    double allowed = kTolerance * largest(array.data) + kCancellation * upstream + kDifferenceRounding;
    for (int64_t i = 0; i < array.size(); ++i)
      ASSERT_NEAR(gradient.data[i], array.data[i], allowed) << "gradient of " << name << ", element " << i;
  }
}

}  // namespace mlir::ft::test
