// Products of operands that are rounded to floats of 8 bits. The reference rounds by looking at all numbers
// of a format, scales by trying powers of two, and knows what shares a scale from the definition: of what the
// product reads as rows that it sums over.
#include "test/conformance/float8_cases.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "runtime/base/cuda_workspace.h"
#include "runtime/base/workspace.h"

namespace ft::conformance {
namespace {

// All finite magnitudes of a format, ascending; the number at an even place has an even last bit.
std::vector<double> Magnitudes(const std::string& format) {
  const int mantissa = format == "e4m3" ? 3 : 2, bias = format == "e4m3" ? 7 : 15;
  const double largest = format == "e4m3" ? 448 : 57344;
  std::vector<double> values;
  for (int bits = 0; bits < 128; ++bits) {
    const int exponent = bits >> mantissa, fraction = bits % (1 << mantissa);
    const double value = exponent == 0 ? std::ldexp(fraction, 1 - bias - mantissa)
                                       : std::ldexp(fraction + (1 << mantissa), exponent - bias - mantissa);
    if (value <= largest) values.push_back(value);
  }
  return values;
}

double Nearest(double x, const std::vector<double>& magnitudes) {
  const auto above = std::lower_bound(magnitudes.begin(), magnitudes.end(), std::abs(x));
  size_t i = static_cast<size_t>(above - magnitudes.begin());
  if (i > 0 && i < magnitudes.size()) {
    const double up = magnitudes[i] - std::abs(x), down = std::abs(x) - magnitudes[i - 1];
    if (down < up || (down == up && i % 2 == 1)) --i;
  }
  return std::copysign(magnitudes[std::min(i, magnitudes.size() - 1)], x);
}

// Rows that are summed over, [rows][k], in blocks that share a scale.
void RoundRows(std::vector<double*>& elements, int64_t rows, int64_t k, int64_t block_rows, int64_t block_k,
               const std::string& format) {
  const std::vector<double> magnitudes = Magnitudes(format);
  for (int64_t row = 0; row < rows; row += block_rows) {
    for (int64_t first = 0; first < k; first += block_k) {
      double greatest = 0;
      const auto each = [&](auto f) {
        for (int64_t i = row; i < std::min(rows, row + block_rows); ++i)
          for (int64_t j = first; j < std::min(k, first + block_k); ++j) f(*elements[i * k + j]);
      };
      each([&](double x) { greatest = std::max(greatest, std::abs(x)); });
      double scale = 1;
      if (greatest > 0) {
        while (greatest * scale > magnitudes.back()) scale /= 2;
        while (greatest * scale * 2 <= magnitudes.back()) scale *= 2;
      }
      each([&](double& x) { x = Nearest(x * scale, magnitudes) / scale; });
    }
  }
}

struct Form {
  int64_t m, n, k;
  bool transpose_a = false, transpose_b = false;
  bool bias = false, acc = false;
  DType out = DType::kBF16;
  std::string a = "e4m3", b = "e4m3", scaling = "tensorwise";
};

// Of many magnitudes, so that it matters which share a scale; some are zero.
Array Spread(std::vector<int64_t> dims, uint64_t seed) {
  Array x = Random(std::move(dims), seed);
  const int64_t columns = x.dims.back();
  for (size_t i = 0; i < x.values.size(); ++i) {
    const int64_t row = static_cast<int64_t>(i) / columns, column = static_cast<int64_t>(i) % columns;
    x.values[i] *= std::ldexp(1.0, static_cast<int>(row % 7 + column / 40 % 5) - 6);
    if (row % 11 == 3 && column < 130) x.values[i] = 0;
  }
  return As(x, DType::kBF16);
}

void AddCase(std::vector<Case>& cases, const Form& f) {
  const auto dims = [](bool transpose, int64_t rows, int64_t columns) {
    return transpose ? std::vector<int64_t>{columns, rows} : std::vector<int64_t>{rows, columns};
  };
  const Array a = Spread(dims(f.transpose_a, f.m, f.k), 51), b = Spread(dims(f.transpose_b, f.k, f.n), 52);
  const Array bias = f.bias ? As(Random({f.n}, 53), DType::kBF16) : Absent();
  const Array acc = f.acc ? As(Random({f.m, f.n}, 54), f.out) : Absent();
  Array a8 = a, b8 = b;
  std::vector<double*> rows_of_a, rows_of_b;
  for (int64_t i = 0; i < f.m; ++i)
    for (int64_t l = 0; l < f.k; ++l)
      rows_of_a.push_back(&a8.values[f.transpose_a ? l * f.m + i : i * f.k + l]);
  for (int64_t j = 0; j < f.n; ++j)
    for (int64_t l = 0; l < f.k; ++l)
      rows_of_b.push_back(&b8.values[f.transpose_b ? j * f.k + l : l * f.n + j]);
  const bool blocks = f.scaling == "blockwise";
  RoundRows(rows_of_a, f.m, f.k, blocks ? 1 : f.m, blocks ? 128 : f.k, f.a);
  RoundRows(rows_of_b, f.n, f.k, !blocks ? f.n : f.transpose_a ? 1 : 128, blocks ? 128 : f.k, f.b);
  Array expected = Constant({f.m, f.n}, 0);
  for (int64_t i = 0; i < f.m; ++i) {
    for (int64_t j = 0; j < f.n; ++j) {
      double sum = (f.acc ? acc.values[i * f.n + j] : 0) + (f.bias ? bias.values[j] : 0);
      for (int64_t l = 0; l < f.k; ++l) sum += *rows_of_a[i * f.k + l] * *rows_of_b[j * f.k + l];
      expected.values[i * f.n + j] = sum;
    }
  }
  expected.dtype = f.out;
  std::vector<std::pair<std::string, KernelAttributes::Value>> attributes = {
      {"a_format", f.a}, {"b_format", f.b}, {"scaling", f.scaling}};
  if (f.transpose_a) attributes.emplace_back("transpose_a", int64_t{1});
  if (f.transpose_b) attributes.emplace_back("transpose_b", int64_t{1});
  const std::string label = std::to_string(f.m) + "x" + std::to_string(f.n) + "x" + std::to_string(f.k) +
                            (f.transpose_a ? " ta" : "") + (f.transpose_b ? " tb" : "") +
                            (f.bias ? " bias" : "") + (f.acc ? " acc" : "") + " " + f.a + " " + f.b + " " +
                            f.scaling + " to " + std::string(Name(f.out));
  cases.push_back({"matmul",
                   label,
                   {a, b, bias, acc},
                   Attributes(std::move(attributes)),
                   {expected},
                   {.reduction = static_cast<double>(f.k),
                    .workspace_bytes = Float8Workspace(f.m, f.n, f.k),
                    .tied = {3},
                    .cuda_workspace_bytes = cuda_workspace::Float8Product(f.m, f.n, f.k)}});
}

// [m, n] of the magnitudes of what is multiplied, which rounding leaves below 9/8 of what they were.
Array SumsOfMagnitudes(const Case& c) {
  const bool ta = c.attributes.Has("transpose_a"), tb = c.attributes.Has("transpose_b");
  const Array &a = c.in[0], &b = c.in[1];
  const int64_t m = c.expected[0].rows(), n = c.expected[0].last(), k = a.size() / m;
  Array sums = Constant({m, n}, 0);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j)
      for (int64_t l = 0; l < k; ++l)
        sums.values[i * n + j] += 1.125 * 1.125 * std::abs(a.values[ta ? l * m + i : i * k + l]) *
                                  std::abs(b.values[tb ? j * k + l : l * n + j]);
  return sums;
}

}  // namespace

bool IsFloat8(const Case& c) { return c.attributes.Has("scaling"); }

Case WithFloat8Sums(Case c) {
  constexpr double kDropped = 0x1p-13, kAtOnce = 32;
  Array off = SumsOfMagnitudes(c);
  for (double& x : off.values) x *= kDropped * (1 + std::ceil(c.rules.reduction / kAtOnce));
  c.rules.cuda_rounding = {off};
  return c;
}

// As passes make them: weights have multiples of 16 rows and columns, tokens are of any number.
void AddFloat8Cases(std::vector<Case>& cases) {
  for (const char* scaling : {"tensorwise", "blockwise"}) {
    for (const auto& [tokens, in, out] :
         {std::array<int64_t, 3>{1, 64, 80}, {13, 80, 64}, {130, 272, 144}, {37, 528, 176}}) {
      const bool odd = tokens % 2 == 1;
      for (const bool transpose_b : {false, true}) {
        AddCase(cases, {.m = tokens,
                        .n = out,
                        .k = in,
                        .transpose_b = transpose_b,
                        .bias = odd == transpose_b,
                        .scaling = scaling});
        AddCase(cases, {.m = tokens,
                        .n = out,
                        .k = in,
                        .transpose_b = transpose_b,
                        .acc = odd != transpose_b,
                        .a = "e5m2",
                        .scaling = scaling});
      }
      for (const DType type : {DType::kF32, DType::kBF16}) {
        AddCase(cases, {.m = in,
                        .n = out,
                        .k = tokens,
                        .transpose_a = true,
                        .acc = odd,
                        .out = type,
                        .b = "e5m2",
                        .scaling = scaling});
        AddCase(cases, {.m = in,
                        .n = out,
                        .k = tokens,
                        .transpose_a = true,
                        .acc = !odd,
                        .out = type,
                        .a = "e5m2",
                        .scaling = scaling});
      }
    }
  }
}

}  // namespace ft::conformance
