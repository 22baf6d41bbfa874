#include "test/conformance/case.h"

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

void AddCase(std::vector<Case>& cases, const Shape& s, bool ta, bool tb, bool with_bias, bool with_acc) {
  auto dims = [](bool transpose, int64_t rows, int64_t columns) {
    return transpose ? std::vector<int64_t>{columns, rows} : std::vector<int64_t>{rows, columns};
  };
  const Array a = Random(dims(ta, s.m, s.k), 41), b = Random(dims(tb, s.k, s.n), 42);
  const Array bias = with_bias ? Random({s.n}, 43) : Absent(),
              acc = with_acc ? Random({s.m, s.n}, 44) : Absent();
  KernelAttributes attributes;
  if (ta) attributes.Add("transpose_a", int64_t{1});
  if (tb) attributes.Add("transpose_b", int64_t{1});
  const std::string label = std::to_string(s.m) + "x" + std::to_string(s.n) + "x" + std::to_string(s.k) +
                            (ta ? " ta" : "") + (tb ? " tb" : "") + (with_bias ? " bias" : "") +
                            (with_acc ? " acc" : "");
  cases.push_back({"matmul",
                   label,
                   {a, b, bias, acc},
                   attributes,
                   {Product(a, b, bias, acc, s, ta, tb)},
                   {.reduction = double(s.k), .tied = {3}}});
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
  return cases;
}

}  // namespace ft::conformance
