#include "compiler/optimizer/formulas.h"

#include "dialects/ft/elementwise.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/step_scalar_formulas.h"

#include <cctype>

namespace ft::compiler {

using namespace mlir;

// A formula of the step with numbers for hyperparameters, but for weight_decay, which parameters differ in.
static std::string withNumbers(std::string_view formula, const Hyperparameters &hyperparameters) {
  std::string text;
  for (size_t i = 0; i < formula.size();) {
    size_t end = i;
    while (end < formula.size() &&
           (std::isalnum(static_cast<unsigned char>(formula[end])) || formula[end] == '_'))
      ++end;
    if (end == i) {
      text += formula[i++];
      continue;
    }
    auto found = hyperparameters.find(formula.substr(i, end - i));
    if (found == hyperparameters.end() || found->first == "weight_decay")
      text += formula.substr(i, end - i);
    else
      text += fmt::format("{}", found->second);
    i = end;
  }
  return text;
}

static absl::Status findScalars(const Expression &expression, const Hyperparameters &hyperparameters,
                                std::vector<std::string> &scalars) {
  for (const Expression &operand : expression.operands)
    FT_RETURN_IF_ERROR(findScalars(operand, hyperparameters, scalars));
  if (expression.kind != Expression::Kind::kBracket)
    return absl::OkStatus();
  std::string formula = withNumbers(expression.name, hyperparameters);
  FT_ASSIGN_OR_RETURN(const StepScalars read, ReadStepScalars(formula, 0));
  if (!IsConstant(read, 0) && !llvm::is_contained(scalars, formula))
    scalars.push_back(formula);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Assignment>> parseFormulas(std::string_view formulas) {
  std::vector<Assignment> assignments;
  for (std::string_view formula : SplitTrimmed(formulas, ';')) {
    std::vector<std::string_view> sides = SplitTrimmed(formula, '=');
    if (sides.size() != 2)
      return absl::InvalidArgumentError(fmt::format("'{}' is no assignment", formula));
    FT_ASSIGN_OR_RETURN(Expression value, ParseExpression(sides[1]));
    assignments.push_back({std::string(sides[0]), std::move(value)});
  }
  return assignments;
}

absl::Status findStepScalars(ArrayRef<Assignment> assignments, const Hyperparameters &hyperparameters,
                             std::vector<std::string> &scalars) {
  for (const Assignment &assignment : assignments)
    FT_RETURN_IF_ERROR(findScalars(assignment.value, hyperparameters, scalars));
  return absl::OkStatus();
}

std::string stepScalarFormulas(ArrayRef<std::string> scalars) {
  return scalars.empty() ? "clip" : fmt::format("clip; {}", fmt::join(scalars, "; "));
}

absl::Status FormulaBuilder::run(ArrayRef<Assignment> assignments) {
  for (const Assignment &assignment : assignments) {
    FT_ASSIGN_OR_RETURN(values[assignment.name], valueOf(assignment.value));
  }
  return absl::OkStatus();
}

// Rounded as the scalars of a step are.
Value FormulaBuilder::constant(double number) {
  auto scalar = RankedTensorType::get({}, b.getF32Type());
  return mlir::ft::FillOp::create(b, loc, scalar, b.getF64FloatAttr(static_cast<float>(number)));
}

absl::StatusOr<Value> FormulaBuilder::valueOf(const Expression &expression) {
  switch (expression.kind) {
  case Expression::Kind::kNumber:
    return constant(expression.number);
  case Expression::Kind::kName:
    if (Value value = values.lookup(expression.name))
      return value;
    return absl::InvalidArgumentError(fmt::format("there is no '{}' yet", expression.name));
  case Expression::Kind::kBracket: {
    std::string formula = withNumbers(expression.name, hyperparameters);
    if (Value number = scalars.lookup(formula))
      return number;
    FT_ASSIGN_OR_RETURN(const StepScalars read, ReadStepScalars(formula, 0));
    return constant(StepScalarAt(read, 0, /*decays=*/false, {}));
  }
  case Expression::Kind::kCall:
    break;
  }
  SmallVector<Value> operands;
  for (const Expression &operand : expression.operands) {
    FT_ASSIGN_OR_RETURN(Value value, valueOf(operand));
    operands.push_back(value);
  }
  Value result = function ? function(*this, expression.name, operands) : Value();
  if (!result)
    result = elementwise(expression.name, operands);
  if (result)
    return result;
  return absl::InvalidArgumentError(
      fmt::format("no elementwise primitive '{}' has {} operands alone", expression.name, operands.size()));
}

Value FormulaBuilder::elementwise(StringRef name, ArrayRef<Value> given) {
  for (const ElementwiseRow &row : kElementwiseRows)
    if (row.name == std::string_view(name) && row.num_parameters() == 0 &&
        row.operands == static_cast<int>(given.size())) {
      SmallVector<Value> operands = alike(given);
      OperationState state(loc, ("ft." + StringRef(row.name)).str());
      SmallVector<Type> types(llvm::map_range(operands, [](Value value) { return value.getType(); }));
      mlir::ft::elementwise::build(row, b, state, mlir::ft::elementwise::inferType(row, types), operands, {});
      return b.create(state)->getResult(0);
    }
  return {};
}

SmallVector<Value> FormulaBuilder::alike(ArrayRef<Value> operands) {
  SmallVector<int64_t> extents;
  for (Value operand : operands) {
    ArrayRef<int64_t> shape = cast<RankedTensorType>(operand.getType()).getShape();
    extents.resize(std::max(extents.size(), shape.size()), 1);
    for (auto [extent, own] : llvm::zip(extents, shape))
      extent = std::max(extent, own);
  }
  return llvm::map_to_vector(operands, [&](Value operand) -> Value {
    auto type = cast<RankedTensorType>(operand.getType());
    if (type.getRank() == 0 || type.getShape() == ArrayRef<int64_t>(extents))
      return operand;
    return mlir::ft::BroadcastOp::create(b, loc, type.clone(extents), operand);
  });
}

} // namespace ft::compiler
