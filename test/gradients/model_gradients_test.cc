// Whole models, small: the gradient of every parameter against the derivative of the float64 reference along
// a random direction in that parameter.
#include <gtest/gtest.h>

#include <cmath>

#include "compiler/programs/passes.h"
#include "dialects/ft/dialect.h"
#include "dialects/ft/layer.h"
#include "dialects/ft/signature.h"
#include "mlir/Pass/PassManager.h"
#include "models/registry.h"
#include "test/gradients/gradient_check.h"
#include "test/support/reference.h"

namespace mlir::ft::test {
namespace {

// Weights in [-0.2, 0.2]: activations stay of order 1 and attention is not uniform; norms near 1.
NamedArrays modelParameters(ModuleOp module) {
  NamedArrays arrays = randomParameters(module, 42);
  for (auto& [name, array] : arrays) {
    auto parameter = module.lookupSymbol<ParameterOp>(name);
    bool aroundOne =
        parameter.getInit().getKind() == InitKind::constant && parameter.getInit().getValue() == 1.0;
    for (double& value : array.data) value = float(0.2 * value + aroundOne);
  }
  return arrays;
}

double norm(const Array& array) {
  double sum = 0;
  for (double value : array.data) sum += value * value;
  return std::sqrt(sum);
}

// As compiling does before it differentiates: what only evaluation computes is in a function of its own.
bool takeOutputsAway(ModuleOp module) {
  PassManager manager(module.getContext());
  manager.addPass(::ft::compiler::createMakeEvalStepPass());
  if (failed(manager.run(module))) return false;
  module.lookupSymbol(kEvalStepFunction)->erase();
  return true;
}

// Ids that any table of a model has, lengths of which one leaves something out, labels of which some do not
// count where each position has one.
StepInputs inputsOf(func::FuncOp forward) {
  StepInputs inputs;
  for (BlockArgument argument : forward.getArguments()) {
    std::string name = inputName(forward, argument.getArgNumber()).str();
    auto type = cast<RankedTensorType>(argument.getType());
    uint64_t seed = argument.getArgNumber() + 1;
    Array& array = inputs.inputs[name];
    if (isa<FloatType>(type.getElementType())) {
      array = randomArray(type.getShape(), seed);
    } else {
      array = randomIndices(type.getShape(), name == "tokens" || name == "targets" ? 256 : 2, seed);
    }
    for (size_t i = 0; i < array.data.size(); ++i) {
      if (name == "lengths") array.data[i] = i % 2 == 0 ? 7 : 11;
      if (name == "labels" && type.getRank() == 2 && i % 3 == 0) array.data[i] = -100;
    }
  }
  inputs.inputs["rng"] = Array({3});
  inputs.inputs["rng"].data = {99, 3, 0};
  return inputs;
}

struct ModelRun {
  const char* name;
  Pipeline pipeline;
};

void PrintTo(const ModelRun& run, std::ostream* out) { *out << run.name; }

class ModelGradients : public ::testing::TestWithParam<ModelRun> {};

TEST_P(ModelGradients, AgreeWithDirectionalDerivatives) {
  std::unique_ptr<MLIRContext> context = makeContext();
  ::ft::models::Overrides overrides;
  overrides["batch"] = 2;
  if (GetParam().name != std::string("vit")) overrides["seq"] = 11;
  auto built = ::ft::models::buildModel(*context, GetParam().name, "debug", overrides);
  ASSERT_TRUE(bool(built)) << llvm::toString(built.takeError());
  OwningOpRef<ModuleOp> module = std::move(*built);
  ASSERT_TRUE(takeOutputsAway(*module));
  OwningOpRef<ModuleOp> step = module->clone();
  ASSERT_TRUE(differentiate(*step, GetParam().pipeline));

  NamedArrays parameters = modelParameters(*module);
  StepInputs inputs = inputsOf(module->lookupSymbol<func::FuncOp>(kForwardFunction));
  absl::StatusOr<StepResult> result = runStep(*step, parameters, inputs);
  ASSERT_TRUE(result.ok()) << result.status().message();

  Reference reference(module->lookupSymbol<func::FuncOp>(kForwardFunction));
  double loss = reference.loss(parameters, inputs);
  EXPECT_NEAR(result->loss, loss, 1e-6 * loss);
  uint64_t seed = 1000;
  for (auto& [name, array] : parameters) {
    const Array& gradient = result->gradients[name];
    ASSERT_EQ(gradient.size(), array.size()) << name;
    if (StringRef(name).ends_with(".key.bias")) {  // it moves all scores of a query alike
      EXPECT_LT(norm(gradient), 1e-6) << name;
      continue;
    }
    Array direction = randomArray(array.shape, ++seed), base = array;
    double along = 0, h = 1e-6;
    for (int64_t i = 0; i < array.size(); ++i) along += gradient.data[i] * direction.data[i];
    auto lossAt = [&](double t) {
      for (int64_t i = 0; i < array.size(); ++i) array.data[i] = base.data[i] + t * direction.data[i];
      return reference.loss(parameters, inputs);
    };
    double expected = (lossAt(h) - lossAt(-h)) / (2 * h);
    array = base;
    // Rounding errors of a gradient's elements are independent, so along a direction they sum to about
    // |error| x 0.58, as the gradient itself does. Tens of f32 ops in a chain, each a few ulp (6e-8) off:
    // below 2e-5. 1e-8: the differences' own rounding, 1e-15 x loss / h.
    EXPECT_NEAR(along, expected, 2e-5 * norm(gradient) + 1e-8) << name;
    EXPECT_GT(norm(gradient), 1e-6) << name << " gets no gradient to speak of: the check would be empty";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, ModelGradients,
    ::testing::Values(ModelRun{"gpt2", Pipeline::kPlain}, ModelRun{"gpt2", Pipeline::kFused},
                      ModelRun{"llama", Pipeline::kPlain}, ModelRun{"llama", Pipeline::kFused},
                      ModelRun{"free_transformer", Pipeline::kPlain},
                      ModelRun{"free_transformer", Pipeline::kFused}, ModelRun{"baseline", Pipeline::kFused},
                      ModelRun{"qwen3", Pipeline::kFused}, ModelRun{"gemma2", Pipeline::kPlain},
                      ModelRun{"gemma3", Pipeline::kFused}, ModelRun{"mixtral", Pipeline::kPlain},
                      ModelRun{"qwen3_moe", Pipeline::kFused}, ModelRun{"vit", Pipeline::kPlain},
                      ModelRun{"bert", Pipeline::kFused}, ModelRun{"bert_classifier", Pipeline::kPlain}));

}  // namespace
}  // namespace mlir::ft::test
