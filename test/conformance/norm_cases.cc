#include <cmath>

#include "runtime/base/workspace.h"
#include "test/conformance/case.h"

namespace ft::conformance {
namespace {

constexpr double kEps = 1e-5;

// in: x, weight, bias.
Arrays LayerNorm(const Arrays& in) {
  Array r = in[0];
  const int64_t n = r.last();
  for (int64_t row = 0; row < r.rows(); ++row) {
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < n; ++i) mean += in[0].values[row * n + i] / n;
    for (int64_t i = 0; i < n; ++i) variance += std::pow(in[0].values[row * n + i] - mean, 2) / n;
    for (int64_t i = 0; i < n; ++i) {
      r.values[row * n + i] =
          (in[0].values[row * n + i] - mean) / std::sqrt(variance + kEps) * in[1].values[i] + in[2].values[i];
    }
  }
  return {r};
}

// in: x, weight.
Arrays RmsNorm(const Arrays& in) {
  Array r = in[0];
  const int64_t n = r.last();
  for (int64_t row = 0; row < r.rows(); ++row) {
    double square = 0;
    for (int64_t i = 0; i < n; ++i) square += std::pow(in[0].values[row * n + i], 2) / n;
    for (int64_t i = 0; i < n; ++i)
      r.values[row * n + i] = in[0].values[row * n + i] / std::sqrt(square + kEps) * in[1].values[i];
  }
  return {r};
}

}  // namespace

std::vector<Case> NormCases() {
  std::vector<Case> cases;
  const KernelAttributes attributes = Attributes({{"eps", kEps}});
  struct Shape {
    int64_t rows, columns;
  };
  for (const Shape& s : {Shape{1, 2}, {3, 5}, {7, 64}, {65, 33}, {500, 768}}) {
    const Array x = Random({s.rows, s.columns}, 31), weight = Random({s.columns}, 32),
                bias = Random({s.columns}, 33);
    const std::string label = std::to_string(s.rows) + "x" + std::to_string(s.columns);
    const double n = s.columns;
    cases.push_back(
        {"layer_norm", label, {x, weight, bias}, attributes, LayerNorm({x, weight, bias}), {.reduction = n}});
    cases.push_back({"rms_norm", label, {x, weight}, attributes, RmsNorm({x, weight}), {.reduction = n}});
    if (s.rows * s.columns > 3000) continue;
    const Array dy = Random(x.dims, 34);
    const double longest = std::max(s.rows, s.columns);
    auto gradient = [&](const auto& f, const Arrays& in, size_t wrt) {
      return NumericGradient(f, in, wrt, {dy});
    };
    const Arrays ln = {x, weight, bias}, rms = {x, weight};
    // dx is a difference of terms as large as dy * weight / deviation.
    cases.push_back(
        {"layer_norm_grad",
         label,
         {dy, x, weight},
         attributes,
         {gradient(LayerNorm, ln, 0), gradient(LayerNorm, ln, 1), gradient(LayerNorm, ln, 2)},
         {.reduction = longest, .magnitude = 4, .workspace_bytes = LayerNormGradWorkspace(s.columns)}});
    cases.push_back(
        {"rms_norm_grad",
         label,
         {dy, x, weight},
         attributes,
         {gradient(RmsNorm, rms, 0), gradient(RmsNorm, rms, 1)},
         {.reduction = longest, .magnitude = 4, .workspace_bytes = RmsNormGradWorkspace(s.columns)}});
  }
  return cases;
}

}  // namespace ft::conformance
