#include <algorithm>
#include <cmath>

#include "runtime/base/cuda_workspace.h"
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

struct Shape {
  int64_t rows, columns;
};

std::string Label(const Shape& s, DType dtype) {
  return std::string(Name(dtype)) + " " + std::to_string(s.rows) + "x" + std::to_string(s.columns);
}

void AddForward(std::vector<Case>& cases, const Shape& s, DType dtype) {
  const KernelAttributes attributes = Attributes({{"eps", kEps}});
  const Array x = As(Random({s.rows, s.columns}, 31), dtype), weight = As(Random({s.columns}, 32), dtype),
              bias = As(Random({s.columns}, 33), dtype);
  const std::string label = Label(s, dtype);
  const double n = s.columns;
  cases.push_back(
      {"layer_norm", label, {x, weight, bias}, attributes, LayerNorm({x, weight, bias}), {.reduction = n}});
  cases.push_back({"rms_norm", label, {x, weight}, attributes, RmsNorm({x, weight}), {.reduction = n}});
}

// The residual sum and its norm, which is of the rounded sum. Either term's buffer may take the sum, the
// other the norm.
void AddResiduals(std::vector<Case>& cases, const Shape& s, DType dtype) {
  const KernelAttributes attributes = Attributes({{"eps", kEps}});
  const Array a = As(Random({s.rows, s.columns}, 35), dtype), b = As(Random(a.dims, 36), dtype),
              weight = As(Random({s.columns}, 32), dtype), bias = As(Random({s.columns}, 33), dtype);
  Array sum = a;
  for (int64_t i = 0; i < sum.size(); ++i) sum.values[i] += b.values[i];
  sum = As(sum, dtype);
  const std::string label = Label(s, dtype);
  const Rules terms = {.reduction = double(s.columns), .reusable = {{0, 0}, {1, 1}}},
              swapped = {.reduction = terms.reduction, .reusable = {{0, 1}, {1, 0}}};
  for (const Rules& rules : {terms, swapped}) {
    cases.push_back({"add_layer_norm",
                     label,
                     {a, b, weight, bias},
                     attributes,
                     {sum, LayerNorm({sum, weight, bias})[0]},
                     rules});
    cases.push_back(
        {"add_rms_norm", label, {a, b, weight}, attributes, {sum, RmsNorm({sum, weight})[0]}, rules});
  }
}

// Gradients of layer_norm or rms_norm from their formula, for rows that are too wide for finite differences.
Arrays Differentiate(bool layer, const Array& dy, const Array& x, const Array& weight) {
  const int64_t n = x.last();
  Array dx = x, dweight = weight, dbias = weight;
  std::fill(dweight.values.begin(), dweight.values.end(), 0.0);
  std::fill(dbias.values.begin(), dbias.values.end(), 0.0);
  for (int64_t begin = 0; begin < x.size(); begin += n) {
    double mean = 0, square = 0, mean_g = 0, mean_gh = 0;
    for (int64_t i = 0; layer && i < n; ++i) mean += x.values[begin + i] / n;
    for (int64_t i = 0; i < n; ++i) square += std::pow(x.values[begin + i] - mean, 2) / n;
    const double scale = 1 / std::sqrt(square + kEps);
    auto h = [&](int64_t i) { return (x.values[begin + i] - mean) * scale; };
    auto g = [&](int64_t i) { return dy.values[begin + i] * weight.values[i]; };
    for (int64_t i = 0; i < n; ++i) {
      mean_g += layer ? g(i) / n : 0;
      mean_gh += g(i) * h(i) / n;
      dweight.values[i] += dy.values[begin + i] * h(i);
      dbias.values[i] += dy.values[begin + i];
    }
    for (int64_t i = 0; i < n; ++i) dx.values[begin + i] = scale * (g(i) - mean_g - h(i) * mean_gh);
  }
  return layer ? Arrays{dx, dweight, dbias} : Arrays{dx, dweight};
}

// dweight and dbias have a type of their own.
void AddGradients(std::vector<Case>& cases, const Shape& s, DType dtype, bool by_formula) {
  const KernelAttributes attributes = Attributes({{"eps", kEps}});
  const Array x = As(Random({s.rows, s.columns}, 31), dtype), weight = As(Random({s.columns}, 32), dtype),
              bias = As(Random({s.columns}, 33), dtype), dy = As(Random(x.dims, 34), dtype);
  const double longest = std::max(s.rows, s.columns);
  auto gradients = [&](const auto& f, const Arrays& in) {
    if (by_formula) return Differentiate(in.size() == 3, dy, x, weight);
    Arrays result;
    for (size_t wrt = 0; wrt < in.size(); ++wrt) result.push_back(NumericGradient(f, in, wrt, {dy}));
    return result;
  };
  Arrays ln = gradients(LayerNorm, {x, weight, bias}), rms = gradients(RmsNorm, {x, weight});
  for (DType reduce : kFloats) {
    if (by_formula && reduce != DType::kF32) continue;  // the type is no matter of width
    ln[1].dtype = ln[2].dtype = rms[1].dtype = reduce;
    const std::string label = Label(s, dtype) + " to " + std::string(Name(reduce));
    // dx is a difference of terms as large as dy * weight / deviation.
    cases.push_back({"layer_norm_grad",
                     label,
                     {dy, x, weight},
                     attributes,
                     ln,
                     {.reduction = longest,
                      .magnitude = 4,
                      .workspace_bytes = LayerNormGradWorkspace(s.columns),
                      .cuda_workspace_bytes = cuda_workspace::LayerNormGrad(s.rows, s.columns)}});
    cases.push_back({"rms_norm_grad",
                     label,
                     {dy, x, weight},
                     attributes,
                     rms,
                     {.reduction = longest,
                      .magnitude = 4,
                      .workspace_bytes = RmsNormGradWorkspace(s.columns),
                      .cuda_workspace_bytes = cuda_workspace::RmsNormGrad(s.rows, s.columns)}});
  }
}

}  // namespace

std::vector<Case> NormCases() {
  std::vector<Case> cases;
  for (DType dtype : kFloats) {
    for (const Shape& s : {Shape{1, 2}, {3, 5}, {7, 64}, {65, 33}, {500, 768}}) {
      AddForward(cases, s, dtype);
      AddResiduals(cases, s, dtype);
      if (s.rows * s.columns <= 3000) AddGradients(cases, s, dtype, false);
    }
    // Rows of a block of threads rather than of a warp, rows that fit in no registers, and in no shared
    // memory.
    for (const Shape& s : {Shape{5, 1003}, {3, 2056}, {2, 8203}, {2, 40000}}) {
      AddForward(cases, s, dtype);
      AddResiduals(cases, s, dtype);
      AddGradients(cases, s, dtype, true);
    }
    AddGradients(cases, {70, 768}, dtype, true);
  }
  return cases;
}

}  // namespace ft::conformance
