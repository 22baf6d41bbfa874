// Whole models, small: the gradient of every parameter against the derivative of the float64 reference along
// a random direction in that parameter.
#include <gtest/gtest.h>

#include <cmath>

#include "dialects/ft/dialect.h"
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
  overrides["seq"] = 11;
  auto built = ::ft::models::buildModel(*context, GetParam().name, "debug", overrides);
  ASSERT_TRUE(bool(built)) << llvm::toString(built.takeError());
  OwningOpRef<ModuleOp> module = std::move(*built), step = module->clone();
  ASSERT_TRUE(differentiate(*step, GetParam().pipeline));

  NamedArrays parameters = modelParameters(*module);
  StepInputs inputs;
  inputs.tokens = randomIndices({2, 11}, 256, 1);
  inputs.targets = randomIndices({2, 11}, 256, 2);
  inputs.inputs["rng"] = Array({3});
  inputs.inputs["rng"].data = {99, 3, 0};
  absl::StatusOr<StepResult> result = runStep(*step, parameters, inputs);
  ASSERT_TRUE(result.ok()) << result.status().message();

  Reference reference(module->lookupSymbol<func::FuncOp>(kForwardFunction));
  double loss = reference.loss(parameters, inputs);
  EXPECT_NEAR(result->loss, loss, 1e-6 * loss);
  uint64_t seed = 1000;
  for (auto& [name, array] : parameters) {
    const Array& gradient = result->gradients[name];
    ASSERT_EQ(gradient.size(), array.size()) << name;
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

INSTANTIATE_TEST_SUITE_P(Models, ModelGradients,
                         ::testing::Values(ModelRun{"gpt2", Pipeline::kPlain},
                                           ModelRun{"gpt2", Pipeline::kFused},
                                           ModelRun{"llama", Pipeline::kPlain},
                                           ModelRun{"llama", Pipeline::kFused},
                                           ModelRun{"free_transformer", Pipeline::kPlain},
                                           ModelRun{"free_transformer", Pipeline::kFused},
                                           ModelRun{"baseline", Pipeline::kFused}));

}  // namespace
}  // namespace mlir::ft::test
