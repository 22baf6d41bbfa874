// The gradient of binary_mapper's logits is not the derivative of its forward, which is piecewise constant.
// The other tests take differences of a surrogate; here the formula is evaluated as it stands, over all
// codes, in float64.
#include <gtest/gtest.h>

#include <cmath>

#include "test/gradients/gradient_check.h"

namespace mlir::ft::test {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// dl_h = sum_d g_d G_d (u_h(d) - sigmoid(l_h)), g_d = dR . table[d].
Array straightThrough(const Array& dy, const Array& logits, const Array& table) {
  Array gradient(logits.shape);
  int64_t bits = logits.last();
  for (int64_t t = 0; t < logits.rows(); ++t)
    for (int64_t d = 0; d < table.rows(); ++d) {
      double upstream = 0, probability = 1;
      for (int64_t i = 0; i < table.last(); ++i) upstream += dy.row(t)[i] * table.row(d)[i];
      for (int64_t h = 0; h < bits; ++h) {
        double s = sigmoid(logits.row(t)[h]);
        probability *= (d >> h & 1) ? s : 1 - s;
      }
      for (int64_t h = 0; h < bits; ++h)
        gradient.row(t)[h] += upstream * probability * (double(d >> h & 1) - sigmoid(logits.row(t)[h]));
    }
  return gradient;
}

// d mean cross entropy / d logits.
Array softmaxGradient(const Array& logits, const Array& targets) {
  Array gradient(logits.shape);
  for (int64_t r = 0; r < logits.rows(); ++r) {
    double sum = 0;
    for (int64_t i = 0; i < logits.last(); ++i) sum += std::exp(logits.row(r)[i]);
    for (int64_t i = 0; i < logits.last(); ++i)
      gradient.row(r)[i] = (std::exp(logits.row(r)[i]) / sum - (i == targets.data[r])) / logits.rows();
  }
  return gradient;
}

class StraightThrough : public ::testing::TestWithParam<int64_t> {};

TEST_P(StraightThrough, FollowsTheFormula) {
  int64_t bits = GetParam(), codes = int64_t{1} << bits;
  Dims logits = {1, 5, bits}, table = {codes, 6};
  GraphCase graph{"straight_through",
                  {{"logits", logits}, {"table", table}},
                  "  %r = ft.binary_mapper %logits, %tokens, %table : (" + tensorType(logits) +
                      ", tensor<1x5xi32>, " + tensorType(table) + ") -> tensor<1x5x6xf32>",
                  {1, 5, 6},
                  {1, 5},
                  codes};
  std::unique_ptr<MLIRContext> context = makeContext();
  OwningOpRef<ModuleOp> module = parseModule(*context, moduleText(graph));
  ASSERT_TRUE(module);
  NamedArrays parameters = randomParameters(*module, 3);
  for (double& logit : parameters["logits"].data) logit *= 4;  // some bits nearly certain
  StepInputs inputs = randomInputs(graph, 11);
  ASSERT_TRUE(differentiate(*module, Pipeline::kPlain));
  absl::StatusOr<StepResult> result = runStep(*module, parameters, inputs);
  ASSERT_TRUE(result.ok()) << result.status().message();

  const Array &functional = parameters["functional"], &rows = parameters["table"];
  Array weighted(functional.shape);
  for (int64_t t = 0; t < weighted.rows(); ++t)
    for (int64_t i = 0; i < weighted.last(); ++i)
      weighted.row(t)[i] = rows.row(int64_t(inputs.tokens.data[t]))[i] * functional.row(t)[i];
  Array dr = softmaxGradient(weighted, inputs.targets);
  for (int64_t i = 0; i < dr.size(); ++i) dr.data[i] *= functional.data[i];
  Array expected = straightThrough(dr, parameters["logits"], rows);
  double top = 0;
  for (double value : expected.data) top = std::max(top, std::abs(value));
  ASSERT_GT(top, 1e-4);
  // Sums of 2^bits products that cancel: the error of each is at most its own rounding, 2^-24 of a g_d G_d,
  // and G sums to 1; what is left is the rounding of sigmoid, G (bits factors) and dR . table (6 terms),
  // hence kTolerance.
  for (int64_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(result->gradients["logits"].data[i], expected.data[i], kTolerance * top) << "element " << i;
}

// 13 bits: more codes than a block of the kernel holds.
INSTANTIATE_TEST_SUITE_P(Bits, StraightThrough, ::testing::Values(1, 2, 6, 8, 13));

}  // namespace
}  // namespace mlir::ft::test
