// Cases of matmul_gelu and matmul_gelu_grad. Operands of the products are multiples of 1/8 below 2, so that
// their sums are exact in f32 in any order: what is rounded to 16 bits, of which GELU is taken, is the same
// number in the reference and in every kernel.
#include "test/conformance/fused_gelu.h"

#include <cmath>
#include <memory>
#include <utility>

#include "runtime/base/cuda_workspace.h"
#include "runtime/base/status_macros.h"
#include "test/conformance/cluster_maker.h"
#include "test/conformance/harness.h"

namespace ft::conformance {
namespace {

const double kScale = std::sqrt(2 / M_PI);
constexpr double kCubic = 0.044715;

double Tanh(double x) { return std::tanh(kScale * (x + kCubic * x * x * x)); }
double Gelu(double x) { return 0.5 * x * (1 + Tanh(x)); }
double TanhFactor(double x) { return x * kScale * (1 + 3 * kCubic * x * x); }
double GeluDerivative(double x) {
  const double t = Tanh(x);
  return 0.5 * (1 + t) + 0.5 * (1 - t * t) * TanhFactor(x);
}

struct Shape {
  int64_t m, n, k;
  bool transpose_b;
};

Array Eighths(std::vector<int64_t> dims, uint64_t seed, DType dtype) {
  Array array = Random(std::move(dims), seed);
  for (double& value : array.values) value = std::trunc(value * 8) / 8;
  array.dtype = dtype;
  return array;
}

// a [m, k] times b [k, n], or [n, k] transposed, unrounded.
Array Product(const Array& a, const Array& b, const Array& bias, const Shape& s) {
  Array r = Constant({s.m, s.n}, 0);
  for (int64_t i = 0; i < s.m; ++i) {
    for (int64_t j = 0; j < s.n; ++j) {
      double sum = bias.present ? bias.values[j] : 0;
      for (int64_t k = 0; k < s.k; ++k)
        sum += a.values[i * s.k + k] * b.values[s.transpose_b ? j * s.k + k : k * s.n + j];
      r.values[i * s.n + j] = sum;
    }
  }
  r.dtype = a.dtype;
  return r;
}

Shape ShapeOf(const Case& c) {
  const Array &a = c.in[0], &r = c.expected[0];
  return {r.rows(), r.last(), a.last(), c.attributes.Has("transpose_b")};
}

bool IsGradient(const Case& c) { return c.op == "matmul_gelu_grad"; }

// Of a forward case, the product; of a backward case, the upstream gradient. Unrounded.
Array SumOf(const Case& c) {
  return Product(c.in[0], c.in[1], IsGradient(c) ? Absent() : c.in[2], ShapeOf(c));
}

std::string Label(const Shape& s, DType dtype, const char* what) {
  return std::to_string(s.m) + "x" + std::to_string(s.n) + "x" + std::to_string(s.k) +
         (s.transpose_b ? " tb " : " ") + std::string(Name(dtype)) + what;
}

std::shared_ptr<const Cluster> ClusterOf(ClusterBody body) {
  return std::make_shared<const Cluster>(Cluster{std::move(body), {}, {}});
}

void AddCases(std::vector<Case>& cases, const Shape& s, DType dtype) {
  KernelAttributes attributes;
  if (s.transpose_b) attributes.Add("transpose_b", int64_t{1});
  const Rules rules = {.reduction = double(s.k), .cuda_workspace_bytes = cuda_workspace::Matmul()};
  const Array a = Eighths({s.m, s.k}, 51, dtype),
              b = Eighths(s.transpose_b ? std::vector<int64_t>{s.n, s.k} : std::vector<int64_t>{s.k, s.n}, 52,
                          dtype);
  for (const Array& bias : {Eighths({s.n}, 53, dtype), Absent()}) {
    const Array x = As(Product(a, b, bias, s), dtype);
    Array result = x;
    for (double& value : result.values) value = Gelu(value);
    const std::string label = Label(s, dtype, bias.present ? " bias" : "");
    attributes.SetCluster(ClusterOf(GeluBody(s.m * s.n, dtype)));
    cases.push_back({"matmul_gelu", label, {a, b, bias}, attributes, {result}, rules});
    cases.push_back({"matmul_gelu", label + " kept", {a, b, bias}, attributes, {result, x}, rules});
  }
  const Array x = As(Random({s.m, s.n}, 54, 4.0), dtype);
  Array dx = As(Product(a, b, Absent(), s), dtype);
  for (int64_t i = 0; i < dx.size(); ++i) dx.values[i] *= GeluDerivative(x.values[i]);
  attributes.SetCluster(ClusterOf(GeluGradBody(s.m * s.n, dtype)));
  cases.push_back({"matmul_gelu_grad", Label(s, dtype, ""), {a, b, x}, attributes, {dx}, rules});
}

}  // namespace

std::vector<Case> FusedGeluCases() {
  std::vector<Case> cases;
  for (DType dtype : kFloats) {
    for (const Shape& s : {Shape{1, 1, 1, false},
                           {1, 8, 3, true},
                           {13, 17, 1, false},
                           {33, 64, 70, true},
                           {100, 51, 257, true},
                           {7, 504, 33, false},
                           {130, 264, 24, false}})
      AddCases(cases, s, dtype);
  }
  return cases;
}

bool HasEpilogue(const Case& c) {
  if (c.op != "matmul_gelu" && !IsGradient(c)) return false;
  const bool keeps = IsGradient(c) || c.expected.size() == 2;
  return c.in[0].dtype != DType::kF32 && (!keeps || c.expected[0].last() % 8 == 0);
}

std::vector<Case> EpilogueCases() {
  std::vector<Case> cases = FusedGeluCases();
  std::erase_if(cases, [](const Case& c) { return !HasEpilogue(c); });
  return cases;
}

absl::StatusOr<Arrays> RunProductThenGelu(Bench& bench, const Case& fused) {
  const bool gradient = IsGradient(fused);
  Case product = {"matmul",
                  fused.label,
                  {fused.in[0], fused.in[1], gradient ? Absent() : fused.in[2], Absent()},
                  fused.attributes,
                  {fused.expected[0]},
                  fused.rules};
  FT_ASSIGN_OR_RETURN(const Arrays products, RunCase(bench, product, false));
  Case then = {"cluster", fused.label, {products[0]}, fused.attributes, {fused.expected[0]}};
  if (gradient) then.in = {fused.in[2], products[0]};
  FT_ASSIGN_OR_RETURN(Arrays results, RunCase(bench, then, false));
  if (fused.expected.size() == 2) results.push_back(products[0]);
  return results;
}

Case WithGeluOfTheSum(Case fused, double tanh_error) {
  const Array sums = SumOf(fused), rounded = As(sums, fused.in[0].dtype);
  fused.rules.cuda_rounding = {sums};
  if (fused.expected.size() == 2) fused.rules.cuda_rounding.push_back(Constant(sums.dims, 0));
  for (int64_t i = 0; i < sums.size(); ++i) {
    const double sum = sums.values[i], stored = rounded.values[i];
    double& change = fused.rules.cuda_rounding[0].values[i];
    if (IsGradient(fused)) {
      // t appears as itself and as 1 - t^2, whose error is at most twice as large.
      const double x = fused.in[2].values[i];
      change = std::abs((sum - stored) * GeluDerivative(x)) +
               std::abs(sum) * (0.5 + std::abs(TanhFactor(x))) * tanh_error;
    } else {
      change = std::abs(Gelu(sum) - Gelu(stored)) + 0.5 * std::abs(sum) * tanh_error;
    }
  }
  return fused;
}

}  // namespace ft::conformance
