#include "compiler/codegen/testing/elementwise_cases.h"

#include <cmath>
#include <limits>

#include "test/support/elementwise_f64.h"
#include "llvm/ADT/StringExtras.h"

namespace ft::compiler::testing {

using namespace mlir;

namespace {

using Domain = ElementwiseDomain;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Errors of an f32 result, before it is rounded to another type: ulps, and beside them an absolute error and
// one of a factor of the operands' product.
struct Tolerance {
  double ulps = 0.5, ulpsWithoutFma = 0.5, absolute = 0, ofFactor = 0;
};

// Of a row that is not told apart: a few roundings.
constexpr Tolerance kUsual = {2, 2};

Tolerance toleranceOf(Elementwise kind) {
  switch (kind) {
  case Elementwise::kRsqrt: // two roundings
    return {1.5, 1.5};
  case Elementwise::kExp: // 0 below -87.33, where f64 has numbers down to 1e-38
    return {1.5, 2.0, 1.3e-38};
  case Elementwise::kLog:
    return {1.5, 2.0};
  case Elementwise::kPow: // products of up to 16; those that go out of f32 on the way are 0
    return {9, 9, 1.2e-38};
  case Elementwise::kSin:
  case Elementwise::kCos:
    return {1, 1, 2e-7};
  case Elementwise::kTanh:
    return {2, 3};
  case Elementwise::kSigmoid:
    return {3, 4, 1.3e-38};
  case Elementwise::kErf:
    return {3, 4};
  case Elementwise::kNormalCdf:
    return {1, 1, 2e-7};
  case Elementwise::kSilu: // sigmoid, and a product
    return {4, 5, 0, 1.3e-38};
  case Elementwise::kSoftCap: // tanh, of an argument that was rounded, and a product
    return {4, 5};
  case Elementwise::kGeglu: // normal_cdf, and two products
    return {2, 2, 0, 2e-7};
  case Elementwise::kGegluTanh: // sigmoid of z, which has 3 roundings, and |z| s (1 - s) < 0.23
    return {5, 6, 0, 1e-7};
  case Elementwise::kAdd: // one rounding, or none
  case Elementwise::kSub:
  case Elementwise::kMul:
  case Elementwise::kDiv:
  case Elementwise::kNeg:
  case Elementwise::kSquare:
  case Elementwise::kReciprocal:
  case Elementwise::kScale:
  case Elementwise::kShift:
  case Elementwise::kStopGradient:
  case Elementwise::kAbs:
  case Elementwise::kSign:
  case Elementwise::kRelu:
  case Elementwise::kMaximum:
  case Elementwise::kMinimum:
  case Elementwise::kClamp:
  case Elementwise::kFloor:
  case Elementwise::kFloorDiv:
  case Elementwise::kRemainder:
  case Elementwise::kSqrt:
  case Elementwise::kSquaredRelu:
  case Elementwise::kEq:
  case Elementwise::kNe:
  case Elementwise::kLt:
  case Elementwise::kLe:
  case Elementwise::kGt:
  case Elementwise::kGe:
  case Elementwise::kAnd:
  case Elementwise::kOr:
  case Elementwise::kNot:
  case Elementwise::kSelect:
    return {};
  default:
    return kUsual;
  }
}

// Numbers of the type, with its ends among them; products of integers are exact in f64.
HostTensor operandOf(Elementwise kind, RankedTensorType type, uint64_t seed) {
  HostTensor tensor(type);
  std::vector<double> plain = numbers(tensor.values.size(), seed);
  const double special[] = {0.0,   -0.0, kInfinity, -kInfinity, kNan, 1e-40, 1e30,
                            -1e30, 0.5,  1,         20,         -20,  6e-8,  65519};
  bool isPeriodic = kind == Elementwise::kSin || kind == Elementwise::kCos;
  for (size_t i = 0; i < plain.size(); ++i) {
    double value = plain[i] * (i % 3 == 0 ? 20 : 1);
    if (i % 7 == 6)
      value = special[(i / 7 * seed) % std::size(special)];
    if (type.getElementType().isInteger(32))
      value = i % 7 == 6 ? (i % 2 ? -0x1p31 : 0x1p31 - 256) : std::trunc(plain[i] * 50);
    if (type.getElementType().isInteger(1))
      value = plain[i] > 0;
    if (isPeriodic && std::abs(value) > 1000)
      value = 1000;
    tensor.values[i] = rounded(value, type.getElementType());
  }
  return tensor;
}

} // namespace

std::vector<std::string> elementsOf(const ElementwiseRow &row) {
  switch (row.domain) {
  case Domain::kFloat:
    return {"f32", "bf16", "f16"};
  case Domain::kInteger:
    return {"i32"};
  case Domain::kNumber:
  case Domain::kCompare:
    return {"f32", "bf16", "f16", "i32"};
  case Domain::kLogic:
    return {"i1"};
  case Domain::kSelect:
    return {"f32", "bf16", "f16", "i32", "i1"};
  }
  return {};
}

std::vector<std::string> parametersOf(const ElementwiseRow &row) {
  if (row.kind == Elementwise::kPow)
    return {"0.0", "1.0", "2.0", "3.0", "-2.0", "0.5", "-0.5", "2.75", "-1.25", "-15.5", "17.0"};
  if (row.kind == Elementwise::kClamp)
    return {"-1.0, 2.0"};
  if (row.domain == Domain::kInteger)
    return {"1.0", "3.0", "64.0"};
  return {row.num_parameters() == 1 ? "-3.0" : ""};
}

ElementwiseCase::ElementwiseCase(MLIRContext &context, const ElementwiseRow &row, const std::string &element,
                                 const std::string &text, Extents extents)
    : row(&row), name(std::string(row.name) + " " + text + " of " + element) {
  std::vector<std::string> types(row.operands, element);
  if (row.domain == Domain::kSelect)
    types[0] = "i1";
  std::vector<std::string> arguments, names, tensors;
  for (auto [i, type] : llvm::enumerate(types)) {
    names.push_back("%x" + std::to_string(i));
    tensors.push_back("tensor<$Mx" + type + ">");
    arguments.push_back(names.back() + ": " + tensors.back());
  }
  if (!text.empty())
    names.push_back(text);
  std::string result = "tensor<$Mx" + (row.domain == Domain::kCompare ? "i1" : element) + ">";
  module = parseBody(context,
                     "func.func @f(" + llvm::join(arguments, ", ") + ") -> " + result + " {\n%r = ft." +
                         std::string(row.name) + " " + llvm::join(names, ", ") + " : " +
                         llvm::join(tensors, ", ") + "\nreturn %r : " + result + "\n}",
                     extents, element);
  for (auto [i, type] : llvm::enumerate(body().getArgumentTypes()))
    inputs.push_back(operandOf(row.kind, cast<RankedTensorType>(type), 17 * i + 1));
  llvm::SmallVector<llvm::StringRef, 2> texts;
  llvm::StringRef(text).split(texts, ", ", /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (auto [number, one] : llvm::zip(parameters, texts))
    one.getAsDouble(number);
}

void compare(const ElementwiseCase &test, const HostTensor &got, bool fma) {
  const ElementwiseRow &row = *test.row;
  const std::vector<HostTensor> &inputs = test.inputs;
  const double (&parameters)[2] = test.parameters;
  Tolerance tolerance = toleranceOf(row.kind);
  Type element = got.element(), f32 = Float32Type::get(got.type.getContext());
  for (size_t i = 0; i < got.values.size(); ++i) {
    double operands[kMaxElementwiseOperands] = {};
    for (size_t k = 0; k < inputs.size(); ++k)
      operands[k] = inputs[k].values[i];
    double exact = ::ft::test::EvaluateElementwise(row.kind, operands, parameters), value = got.values[i];
    if (row.kind == Elementwise::kPow && operands[0] < 0 && parameters[0] != std::floor(parameters[0]))
      exact = kNan; // -infinity too, which C gives a size
    if (element.isInteger(32))
      exact = static_cast<int32_t>(static_cast<uint64_t>(static_cast<int64_t>(exact)));
    double expected = rounded(exact, element),
           product = std::abs(operands[0] * (row.operands > 1 ? operands[1] : 1));
    if (tolerance.ofFactor > 0 && !std::isfinite(product))
      continue; // an infinity times what only f64 has above 0
    if (value == expected || (std::isnan(value) && std::isnan(expected)))
      continue;
    double allowed = (fma ? tolerance.ulps : tolerance.ulpsWithoutFma) * ulpOf(exact, f32) +
                     tolerance.absolute + tolerance.ofFactor * product;
    if (!element.isF32())
      allowed += 0.5 * ulpOf(exact, element);
    bool atEnd = std::isinf(value) && std::abs(exact) > 0.999999 * rounded(3.4e38, f32);
    ASSERT_TRUE(isa<FloatType>(element) && (std::abs(value - exact) <= allowed || atEnd))
        << row.name << " of " << operands[0] << ", " << operands[1] << " is " << value << ", not " << exact
        << "; " << std::abs(value - exact) / ulpOf(exact, f32) << " ulps of f32, at " << i;
  }
}

void eachElementwiseCase(MLIRContext &context, ArrayRef<Extents> shapes,
                         llvm::function_ref<void(ElementwiseCase &)> visit) {
  auto check = [&](const ElementwiseRow &row, const std::string &element, const std::string &parameters,
                   Extents extents) {
    ElementwiseCase test(context, row, element, parameters, extents);
    SCOPED_TRACE(test.name);
    visit(test);
  };
  for (const ElementwiseRow &row : kElementwiseRows)
    for (const std::string &element : elementsOf(row))
      for (const std::string &parameters : parametersOf(row))
        check(row, element, parameters, {5, 771});
  // Shapes are taken apart before rows are looked at: a third of them for each row, each for a third of the
  // rows.
  for (auto [r, row] : llvm::enumerate(kElementwiseRows))
    for (auto [s, extents] : llvm::enumerate(shapes))
      if ((r + s) % 3 == 0)
        check(row, elementsOf(row)[0], parametersOf(row)[0], extents);
}

} // namespace ft::compiler::testing
