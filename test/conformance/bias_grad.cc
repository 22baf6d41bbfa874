// Cases of matmul_bias_grad.
#include "test/conformance/bias_grad.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "runtime/base/cuda_workspace.h"
#include "runtime/base/status_macros.h"
#include "runtime/device/check.h"
#include "test/conformance/cluster_maker.h"
#include "test/conformance/harness.h"

namespace ft::conformance {
namespace {

struct Shape {
  int64_t m, n, k;
};

Array Matrix(int64_t rows, int64_t columns, uint64_t seed, DType dtype, bool exact) {
  Array array = Random({rows, columns}, seed);
  if (!exact) return As(array, dtype);
  for (double& value : array.values) value = std::trunc(value * 8) / 8;
  array.dtype = dtype;
  return array;
}

// a [k, m] transposed times b [k, n].
Array Product(const Array& a, const Array& b, const Shape& s) {
  Array r = Constant({s.m, s.n}, 0);
  for (int64_t i = 0; i < s.m; ++i)
    for (int64_t j = 0; j < s.n; ++j)
      for (int64_t k = 0; k < s.k; ++k)
        r.values[i * s.n + j] += a.values[k * s.m + i] * b.values[k * s.n + j];
  return r;
}

Array SumOfRows(const Array& x) {
  Array r = Constant({x.last()}, 0);
  for (int64_t i = 0; i < x.size(); ++i) r.values[i % x.last()] += x.values[i];
  return r;
}

// What kernels round once.
Array Unrounded(Array array, DType dtype) {
  array.dtype = dtype;
  return array;
}

void AddCases(std::vector<Case>& cases, const Shape& s, DType input, DType output, bool exact) {
  const Array a = Matrix(s.k, s.m, 61, input, exact), b = Matrix(s.k, s.n, 62, input, exact);
  const Array product = Unrounded(Product(a, b, s), output);
  for (const bool of_a : {false, true}) {
    const Array& summed = of_a ? a : b;
    ClusterMaker maker(s.k, summed.last());
    maker.OverRows(ReductionKind::kSum, maker.Whole(input), output);
    KernelAttributes attributes =
        Attributes({{"transpose_a", int64_t{1}}, {"of_a", static_cast<int64_t>(of_a)}});
    attributes.SetCluster(std::make_shared<const Cluster>(Cluster{maker.body(), {}, {}}));
    const int64_t partial = maker.body().PartialBytes();
    cases.push_back({"matmul_bias_grad",
                     std::to_string(s.m) + "x" + std::to_string(s.n) + "x" + std::to_string(s.k) + " " +
                         std::string(Name(input)) + " into " + std::string(Name(output)) +
                         (of_a ? " of a" : " of b"),
                     {a, b},
                     attributes,
                     {product, Unrounded(SumOfRows(summed), output)},
                     {.reduction = double(s.k),
                      .workspace_bytes = partial,
                      .cuda_workspace_bytes = std::max<int64_t>(partial, cuda_workspace::Matmul())}});
  }
}

}  // namespace

std::vector<Case> BiasGradCases(bool exact) {
  std::vector<Case> cases;
  for (DType dtype : kFloats) {
    for (const Shape& s : {Shape{1, 1, 1}, {3, 8, 1}, {17, 5, 40}, {64, 24, 257}, {8, 130, 700}}) {
      AddCases(cases, s, dtype, dtype, exact);
      if (dtype != DType::kF32) AddCases(cases, s, dtype, DType::kF32, exact);
    }
  }
  return cases;
}

std::vector<Case> ExactBiasGradCases() { return BiasGradCases(/*exact=*/true); }

absl::StatusOr<Arrays> RunProductAndSums(Bench& bench, const Case& c) {
  const Array& summed = c.in[c.attributes.Has("of_a") && *Flag(c.attributes, "of_a") ? 0 : 1];
  const Case product = {"matmul",     c.label,         {c.in[0], c.in[1], Absent(), Absent()},
                        c.attributes, {c.expected[0]}, c.rules};
  const Case sums = {"cluster", c.label, {summed}, c.attributes, {c.expected[1]}, c.rules};
  FT_ASSIGN_OR_RETURN(Arrays results, RunCase(bench, product, false));
  FT_ASSIGN_OR_RETURN(const Arrays of_rows, RunCase(bench, sums, false));
  results.push_back(of_rows[0]);
  return results;
}

}  // namespace ft::conformance
