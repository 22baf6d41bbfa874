#include "runtime/base/cuda_workspace.h"
#include "test/conformance/case.h"
#include "test/conformance/float8_cases.h"

namespace ft::conformance {
namespace {

struct Shape {
  int64_t m, n, k;
};

Array Product(const Array& a, const Array& b, const Array& bias, const Array& acc, const Shape& s, bool ta,
              bool tb) {
  Array r = Constant({s.m, s.n}, 0);
  for (int64_t i = 0; i < s.m; ++i) {
    for (int64_t j = 0; j < s.n; ++j) {
      double sum = acc.present ? acc.values[i * s.n + j] : 0;
      for (int64_t k = 0; k < s.k; ++k) {
        sum += a.values[ta ? k * s.m + i : i * s.k + k] * b.values[tb ? j * s.k + k : k * s.n + j];
      }
      r.values[i * s.n + j] = sum + (bias.present ? bias.values[j] : 0);
    }
  }
  return r;
}

// Types of the operands, and of the result with acc.
struct Types {
  DType in = DType::kF32, out = DType::kF32;
};

void AddCase(std::vector<Case>& cases, const Shape& s, bool ta, bool tb, bool with_bias, bool with_acc,
             Types types = {}) {
  auto dims = [](bool transpose, int64_t rows, int64_t columns) {
    return transpose ? std::vector<int64_t>{columns, rows} : std::vector<int64_t>{rows, columns};
  };
  const Array a = As(Random(dims(ta, s.m, s.k), 41), types.in),
              b = As(Random(dims(tb, s.k, s.n), 42), types.in);
  const Array bias = with_bias ? As(Random({s.n}, 43), types.in) : Absent(),
              acc = with_acc ? As(Random({s.m, s.n}, 44), types.out) : Absent();
  Array expected = Product(a, b, bias, acc, s, ta, tb);
  expected.dtype = types.out;
  std::vector<std::pair<std::string, KernelAttributes::Value>> transposed;
  if (ta) transposed.emplace_back("transpose_a", int64_t{1});
  if (tb) transposed.emplace_back("transpose_b", int64_t{1});
  const KernelAttributes attributes = Attributes(std::move(transposed));
  const std::string label = std::to_string(s.m) + "x" + std::to_string(s.n) + "x" + std::to_string(s.k) +
                            (ta ? " ta" : "") + (tb ? " tb" : "") + (with_bias ? " bias" : "") +
                            (with_acc ? " acc" : "") + " " + std::string(Name(types.in)) + " to " +
                            std::string(Name(types.out));
  cases.push_back(
      {"matmul",
       label,
       {a, b, bias, acc},
       attributes,
       {expected},
       {.reduction = double(s.k), .tied = {3}, .cuda_workspace_bytes = cuda_workspace::Matmul()}});
}

void AddHalfCases(std::vector<Case>& cases) {
  constexpr DType kF32 = DType::kF32, kBF16 = DType::kBF16, kF16 = DType::kF16;
  for (const Types& types : {Types{kBF16, kBF16},
                             {kF16, kF16},
                             {kBF16, kF32},
                             {kF16, kF32},
                             {kBF16, kF16},
                             {kF16, kBF16},
                             {kF32, kBF16},
                             {kF32, kF16}}) {
    bool odd = false;
    for (const Shape& s :
         {Shape{1, 1, 1}, {13, 17, 1}, {7, 500, 33}, {33, 65, 70}, {100, 51, 257}, {31, 131, 1100}}) {
      odd = !odd;
      // Only weight gradients, made with transpose_a, have another type than the operands.
      for (bool ta : {false, true}) {
        if (!ta && types.in != types.out) continue;
        for (bool tb : {false, true}) {
          // acc by turns: every two of types, shape, transposes and acc, all but the shape in all ways.
          AddCase(cases, s, ta, tb, false, (ta != tb) != odd, types);
        }
      }
      AddCase(cases, s, false, false, true, false, types);
      AddCase(cases, s, false, true, true, true, types);
    }
  }
  // Several blocks of rows, of columns and of what is summed over.
  AddCase(cases, {460, 790, 270}, false, true, true, false, {kBF16, kBF16});
  AddCase(cases, {460, 790, 270}, true, false, false, true, {kF16, kBF16});
  // More than a workspace of 32 MiB holds as f32.
  AddCase(cases, {3100, 2900, 2}, true, false, true, true, {kBF16, kF16});
}

}  // namespace

std::vector<Case> MatmulCases() {
  std::vector<Case> cases;
  for (const Shape& s : {Shape{1, 1, 1},
                         {1, 7, 3},
                         {5, 1, 9},
                         {13, 17, 1},
                         {8, 48, 16},
                         {33, 65, 70},
                         {100, 51, 257},
                         {7, 500, 33},
                         {64, 192, 64},
                         {260, 300, 129},
                         {31, 131, 1100}}) {
    for (bool ta : {false, true}) {
      for (bool tb : {false, true}) {
        AddCase(cases, s, ta, tb, false, false);
        AddCase(cases, s, ta, tb, false, true);
      }
    }
    AddCase(cases, s, false, false, true, false);
    AddCase(cases, s, false, true, true, true);
  }
  AddHalfCases(cases);
  AddFloat8Cases(cases);
  return cases;
}

}  // namespace ft::conformance
