// Every row of elementwise.def over its types, and convert.
#include <algorithm>
#include <cmath>

#include "fmt/format.h"
#include "runtime/base/elementwise.h"
#include "test/conformance/case.h"
#include "test/support/elementwise_f64.h"

namespace ft::conformance {
namespace {

using Dims = std::vector<int64_t>;
using Domain = ElementwiseDomain;

// Operands of these rows are not negative, or not near 0.
Array Suited(Elementwise kind, size_t operand, Array array) {
  const bool nonnegative = kind == Elementwise::kLog || kind == Elementwise::kSqrt ||
                           kind == Elementwise::kRsqrt || kind == Elementwise::kPow;
  const bool away =
      nonnegative || kind == Elementwise::kReciprocal || (kind == Elementwise::kDiv && operand == 1);
  for (double& value : array.values) {
    if (nonnegative) value = std::abs(value);
    if (away && std::abs(value) < 0.5) value = value < 0 ? -0.5 : 0.5;  // exact in every type
  }
  return array;
}

std::vector<std::array<double, 2>> ParametersOf(const ElementwiseRow& row, bool integers) {
  if (row.kind == Elementwise::kPow)
    return {{0.0}, {1.0}, {2.0}, {3.0}, {-2.0}, {0.5}, {-0.5}, {2.7}, {-1.3}, {-15.5}};
  if (row.kind == Elementwise::kClamp)
    return {integers ? std::array<double, 2>{-5, 9} : std::array<double, 2>{-0.75, 1.5}};
  if (row.domain == Domain::kInteger) return {{1.0}, {3.0}, {64.0}};
  return {{integers ? -3.0 : -0.375}};
}

KernelAttributes AttributesOf(const ElementwiseRow& row, const std::array<double, 2>& parameters) {
  KernelAttributes attributes;
  for (int i = 0; i < row.num_parameters(); ++i)
    attributes.Add(std::string(row.parameters[i]), parameters[i]);
  return attributes;
}

// With the result in `result`; operands that are shorter are repeated.
Case RowCase(const ElementwiseRow& row, Arrays in, const std::array<double, 2>& parameters, DType result,
             const std::string& label) {
  const auto whole = std::max_element(in.begin(), in.end(),
                                      [](const Array& a, const Array& b) { return a.size() < b.size(); });
  Array expected = Typed(Constant(whole->dims, 0), result);
  const double numbers[2] = {parameters[0], parameters[1]};
  for (int64_t i = 0; i < expected.size(); ++i) {
    double operands[kMaxElementwiseOperands] = {};
    for (size_t k = 0; k < in.size(); ++k) operands[k] = in[k].values[i % in[k].size()];
    expected.values[i] = test::EvaluateElementwise(row.kind, operands, numbers);
  }
  Rules rules;
  for (size_t k = 0; k < in.size(); ++k) {
    if (rules.reusable.empty() && in[k].dims == expected.dims && in[k].dtype == result)
      rules.reusable = {{0, static_cast<int>(k)}};
  }
  return {std::string(row.name), label, std::move(in), AttributesOf(row, parameters), {expected}, rules};
}

// Types of the values of a row, without its conditions.
std::vector<DType> TypesOf(const ElementwiseRow& row) {
  const std::vector<DType> floats = {DType::kF32, DType::kBF16, DType::kF16},
                           integers = {DType::kI32, DType::kI64};
  std::vector<DType> types;
  if (row.domain != Domain::kInteger && row.domain != Domain::kLogic) types = floats;
  if (row.domain != Domain::kFloat && row.domain != Domain::kLogic)
    types.insert(types.end(), integers.begin(), integers.end());
  if (row.domain == Domain::kLogic || row.domain == Domain::kSelect) types.push_back(DType::kU8);
  return types;
}

Arrays OperandsOf(const ElementwiseRow& row, DType dtype, const std::vector<Dims>& shapes) {
  Arrays in;
  for (size_t k = 0; k < shapes.size(); ++k) {
    const bool condition = row.domain == Domain::kSelect && k == 0;
    in.push_back(Suited(
        row.kind, k,
        Numbers(shapes[k], 31 * (k + 1) + static_cast<uint64_t>(row.kind), condition ? DType::kU8 : dtype)));
  }
  return in;
}

void AddRow(std::vector<Case>& cases, const ElementwiseRow& row, DType dtype) {
  const DType result = row.domain == Domain::kCompare ? DType::kU8 : dtype;
  const std::string name(Name(dtype));
  for (const std::array<double, 2>& parameters : ParametersOf(row, !IsFloat(dtype))) {
    for (const Dims& dims : {Dims{}, Dims{3, 5}, Dims{2, 1031}}) {
      const std::string label = fmt::format("{} of {} {}", name, Elements(dims), parameters[0]);
      cases.push_back(RowCase(row, OperandsOf(row, dtype, std::vector<Dims>(row.operands, dims)), parameters,
                              result, label));
    }
  }
  if (row.operands == 1) return;
  const Dims whole = {2, 3, 2, 1, 2, 3, 1, 67};  // as many dimensions as there may be
  for (const Dims& suffix : {Dims{}, Dims{67}, Dims{3, 1, 67}}) {
    for (int shorter = 0; shorter < row.operands; ++shorter) {
      std::vector<Dims> shapes(row.operands, whole);
      shapes[shorter] = suffix;
      const std::string label = fmt::format("{} operand {} of {} repeated", name, shorter, Elements(suffix));
      cases.push_back(RowCase(row, OperandsOf(row, dtype, shapes), {}, result, label));
    }
  }
}

// Each operand and the result of a type of its own.
void AddMixed(std::vector<Case>& cases, const ElementwiseRow& row) {
  if (row.domain == Domain::kInteger || row.domain == Domain::kLogic) return;
  std::vector<DType> types = {DType::kBF16, DType::kF32, DType::kF16};
  do {
    Arrays in = OperandsOf(row, DType::kF32, std::vector<Dims>(row.operands, Dims{7, 33}));
    for (int k = 0; k < row.operands; ++k) {
      if (in[k].dtype != DType::kU8) in[k] = As(in[k], types[k]);
    }
    const DType result = row.domain == Domain::kCompare ? DType::kU8 : types[row.operands - 1];
    cases.push_back(
        RowCase(row, in, ParametersOf(row, false)[0], result, fmt::format("mixed from {}", Name(types[0]))));
  } while (std::next_permutation(types.begin(), types.end()));
}

// Towards zero.
void AddConverts(std::vector<Case>& cases) {
  const std::vector<DType> types = {DType::kF32, DType::kBF16, DType::kF16,
                                    DType::kI32, DType::kI64,  DType::kU8};
  for (const DType from : types) {
    for (const DType to : types) {
      if (IsFloat(from) && IsFloat(to)) continue;
      for (int64_t count : {1, 1031}) {
        const Array x = Numbers({count}, 17, from, 90.0);
        Array r = Typed(x, to);
        for (double& value : r.values)
          value = to == DType::kU8 ? double(value != 0)
                  : IsFloat(to)    ? RoundTo(value, to)
                                   : std::trunc(value);
        cases.push_back(
            {"convert", fmt::format("{} to {} of {}", Name(from), Name(to), count), {x}, {}, {r}});
      }
    }
  }
}

// What is beyond the ends of the type, and NaN.
void AddSaturations(std::vector<Case>& cases) {
  Array x = Constant({9}, 0), i32 = Typed(Constant({9}, 0), DType::kI32),
        i64 = Typed(Constant({9}, 0), DType::kI64);
  x.values = {NAN, INFINITY, -INFINITY, 2147483648.0, -2147483648.0, 2147483520.0, 9.3e18, -9.3e18, -1.75};
  i32.values = {
      0, 2147483647.0, -2147483648.0, 2147483647.0, -2147483648.0, 2147483520.0, 2147483647.0, -2147483648.0,
      -1};
  // The largest i64 is 2^63 in f64.
  i64.values = {0, 0x1p63, -0x1p63, 2147483648.0, -2147483648.0, 2147483520.0, 0x1p63, -0x1p63, -1};
  cases.push_back({"convert", "ends of i32", {x}, {}, {i32}});
  cases.push_back({"convert", "ends of i64", {x}, {}, {i64}});
  // Numbers wrap around.
  const Array most = Typed(Constant({3}, 2147483647.0), DType::kI32),
              least = Typed(Constant({3}, -2147483648.0), DType::kI32);
  const Array one = Typed(Constant({3}, 1), DType::kI32);
  cases.push_back({"add", "i32 wraps around", {most, one}, {}, {least}});
  cases.push_back({"neg", "i32 wraps around", {least}, {}, {least}});
}

}  // namespace

std::vector<Case> PrimitiveCases() {
  std::vector<Case> cases;
  for (const ElementwiseRow& row : kElementwiseRows) {
    for (const DType dtype : TypesOf(row)) AddRow(cases, row, dtype);
    AddMixed(cases, row);
  }
  AddConverts(cases);
  AddSaturations(cases);
  return cases;
}

}  // namespace ft::conformance
