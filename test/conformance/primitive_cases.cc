// Every row of elementwise.def over its types, and conversions, as clusters of one op.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "fmt/format.h"
#include "runtime/base/elementwise.h"
#include "test/conformance/case.h"
#include "test/conformance/cluster_maker.h"
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

// As a body has them: in f32 for floats.
std::vector<double> NumbersOf(const ElementwiseRow& row, const std::array<double, 2>& parameters,
                              bool integers) {
  std::vector<double> numbers(parameters.begin(), parameters.begin() + row.num_parameters());
  for (double& number : numbers) number = integers ? number : static_cast<float>(number);
  return numbers;
}

// A body whose rows are as long as the shortest operand that is no single number; flat where that is all of
// them.
struct Spaced {
  explicit Spaced(const Arrays& in) {
    for (const Array& array : in) whole = std::max(whole, array.size());
    int64_t columns = whole;
    for (const Array& array : in)
      if (array.size() != 1) columns = std::min(columns, array.size());
    const bool flat = columns == whole;
    if (flat) columns = kClusterLanes;
    const int64_t rows = (whole + columns - 1) / columns;
    maker.Space(rows, columns, whole - (rows - 1) * columns);
    for (const Array& array : in) {
      const int64_t period = array.size() / columns;  // in rows
      values.push_back(array.size() == whole ? maker.Whole(array.dtype)
                       : array.size() == 1   ? maker.Input(array.dtype, 1, false)
                                             : maker.Input(array.dtype, period, true));
    }
  }

  int64_t whole = 1;
  ClusterMaker maker{1, 1};
  ClusterMaker::Values values;
};

Case CaseOf(const ClusterBody& body, std::string label, Arrays in, Array expected) {
  Rules rules;
  for (uint32_t k = 0; k < in.size(); ++k) {
    if (rules.reusable.empty() && MayTakePlaceOf(body, k, 0)) rules.reusable = {{0, static_cast<int>(k)}};
  }
  KernelAttributes attributes;
  attributes.SetCluster(std::make_shared<const Cluster>(Cluster{body, {}, {}}));
  return {"cluster", std::move(label), std::move(in), attributes, {std::move(expected)}, rules};
}

// With the result in `result`; operands that are shorter are repeated.
Case RowCase(const ElementwiseRow& row, Arrays in, const std::array<double, 2>& parameters, DType result,
             const std::string& label) {
  Spaced spaced(in);
  const std::vector<double> numbers = NumbersOf(row, parameters, !IsFloat(in.back().dtype));
  spaced.maker.Output(spaced.maker.Of(row.kind, spaced.values, numbers, result));
  const auto whole = std::max_element(in.begin(), in.end(),
                                      [](const Array& a, const Array& b) { return a.size() < b.size(); });
  Array expected = Typed(Constant(whole->dims, 0), result);
  for (int64_t i = 0; i < expected.size(); ++i) {
    double operands[kMaxElementwiseOperands] = {}, given[2] = {};
    for (size_t k = 0; k < in.size(); ++k) operands[k] = in[k].values[i % in[k].size()];
    std::copy(numbers.begin(), numbers.end(), given);
    expected.values[i] = test::EvaluateElementwise(row.kind, operands, given);
  }
  return CaseOf(spaced.maker.body(), fmt::format("{} {}", row.name, label), std::move(in),
                std::move(expected));
}

Case ConvertCase(const Array& x, Array expected, const std::string& label) {
  Spaced spaced(Arrays{x});
  spaced.maker.Output(spaced.values[0], expected.dtype);
  return CaseOf(spaced.maker.body(), "convert " + label, {x}, std::move(expected));
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
        cases.push_back(ConvertCase(x, r, fmt::format("{} to {} of {}", Name(from), Name(to), count)));
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
  cases.push_back(ConvertCase(x, i32, "ends of i32"));
  cases.push_back(ConvertCase(x, i64, "ends of i64"));
  // Numbers wrap around.
  const Array most = Typed(Constant({3}, 2147483647.0), DType::kI32),
              least = Typed(Constant({3}, -2147483648.0), DType::kI32);
  const Array one = Typed(Constant({3}, 1), DType::kI32);
  for (auto& [kind, in] : std::vector<std::pair<Elementwise, Arrays>>{{Elementwise::kAdd, {most, one}},
                                                                      {Elementwise::kNeg, {least}}}) {
    cases.push_back(RowCase(RowOf(kind), in, {}, DType::kI32, "i32 wraps around"));
    cases.back().expected = {least};
  }
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
