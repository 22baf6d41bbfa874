// binary_mapper.
#include <cmath>

#include "runtime/base/cuda_workspace.h"
#include "runtime/base/workspace.h"
#include "test/conformance/case.h"

namespace ft::conformance {
namespace {

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// sum_d G_d (dy . table[d]) as a function of the logits: its derivative is the straight-through gradient.
// in: logits, dy, table.
Arrays ExpectedValue(const Arrays& in) {
  const int64_t bits = in[0].last(), width = in[1].last();
  double sum = 0;
  for (int64_t row = 0; row < in[0].rows(); ++row) {
    for (int64_t d = 0; d < (int64_t{1} << bits); ++d) {
      double g = 0, p = 1;
      for (int64_t i = 0; i < width; ++i) g += in[1].values[row * width + i] * in[2].values[d * width + i];
      for (int64_t h = 0; h < bits; ++h) {
        const double s = Sigmoid(in[0].values[row * bits + h]);
        p *= (d >> h & 1) != 0 ? s : 1 - s;
      }
      sum += g * p;
    }
  }
  return {Scalar(sum)};
}

// The formula of ops.td, code by code, for tables too large for finite differences.
Array StraightThrough(const Array& dy, const Array& logits, const Array& table) {
  const int64_t bits = logits.last(), width = dy.last();
  Array r = As(Constant(logits.dims, 0), logits.dtype);
  for (int64_t row = 0; row < logits.rows(); ++row) {
    for (int64_t d = 0; d < (int64_t{1} << bits); ++d) {
      double g = 0, p = 1;
      for (int64_t i = 0; i < width; ++i) g += dy.values[row * width + i] * table.values[d * width + i];
      for (int64_t h = 0; h < bits; ++h)
        p *= Sigmoid(logits.values[row * bits + h] * ((d >> h & 1) != 0 ? 1 : -1));
      for (int64_t h = 0; h < bits; ++h) {
        r.values[row * bits + h] += g * p * (double(d >> h & 1) - Sigmoid(logits.values[row * bits + h]));
      }
    }
  }
  return r;
}

void AddMapper(std::vector<Case>& cases, int64_t rows, int64_t bits, int64_t width, DType dtype) {
  const Array logits = As(Random({rows, bits}, 72), dtype),
              table = As(Random({int64_t{1} << bits, width}, 73), dtype),
              dy = As(Random({rows, width}, 74), dtype);
  const Array index = RandomIds({rows}, int64_t{1} << bits, 75);
  Array r = As(Constant({rows, width}, 0), dtype);
  for (int64_t i = 0; i < r.size(); ++i)
    r.values[i] = table.values[static_cast<int64_t>(index.values[i / width]) * width + i % width];
  const std::string label =
      std::string(Name(dtype)) + " " + std::to_string(rows) + " rows, " + std::to_string(bits) + " bits";
  cases.push_back({"binary_mapper", label, {logits, index, table}, {}, {r}});
  const bool small = rows * (int64_t{1} << bits) * width < 20000;
  const Array gradient = small ? NumericGradient(ExpectedValue, {logits, dy, table}, 0, {Scalar(1)})
                               : StraightThrough(dy, logits, table);
  // g is about sqrt(width) large.
  cases.push_back({"binary_mapper_grad",
                   label,
                   {dy, logits, table},
                   {},
                   {gradient},
                   {.reduction = double(width),
                    .magnitude = 2 * std::sqrt(double(width)),
                    .workspace_bytes = BinaryMapperGradWorkspace(rows, bits),
                    .cuda_workspace_bytes = cuda_workspace::BinaryMapperGrad(rows, bits, width, dtype)}});
}

}  // namespace

std::vector<Case> LatentCases() {
  std::vector<Case> cases;
  for (DType dtype : kFloats) {
    AddMapper(cases, 1, 1, 1, dtype);
    AddMapper(cases, 5, 3, 7, dtype);
    AddMapper(cases, 3, 6, 64, dtype);
    AddMapper(cases, 300, 6, 33, dtype);
    AddMapper(cases, 2, 13, 5, dtype);  // two blocks of codes
  }
  AddMapper(cases, 5, 7, 9, DType::kBF16);
  AddMapper(cases, 9, 10, 3, DType::kF32);
  AddMapper(cases, 2051, 2, 3, DType::kF16);  // several blocks of rows
  AddMapper(cases, 1, 16, 2, DType::kF32);
  return cases;
}

}  // namespace ft::conformance
