#include "compiler/optimizer/update_body.h"

#include "dialects/ft/elementwise.h"
#include "dialects/ft/updates.h"
#include "fmt/format.h"
#include "runtime/base/expression.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/step_scalar_formulas.h"
#include "llvm/ADT/StringMap.h"

#include <cctype>

namespace ft::compiler {
namespace {

using namespace mlir;

struct Assignment {
  std::string name;
  Expression value;
};

absl::StatusOr<std::vector<Assignment>> parse(std::string_view formulas) {
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

// A formula of the step with numbers for hyperparameters, but for weight_decay, which parameters differ in.
std::string withNumbers(std::string_view formula, const Hyperparameters &hyperparameters) {
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

// A part of an update that is computed element by element.
struct Stage {
  ArrayRef<Assignment> assignments;
  std::vector<std::string> inputs; // the first is that which comes from gradients
  std::vector<std::string> results;
  std::vector<std::string_view> states;
  bool clips = true; // the first input is the gradient as it was reduced
};

class BodyBuilder {
public:
  BodyBuilder(MLIRContext &context, const Hyperparameters &hyperparameters)
      : b(&context), loc(UnknownLoc::get(&context)), hyperparameters(hyperparameters),
        scalar(RankedTensorType::get({}, b.getF32Type())), block(scalar.clone({mlir::ft::kBlockElements})) {}

  absl::StatusOr<UpdateBody> build(StringRef name, const Stage &stage) {
    for (const Assignment &assignment : stage.assignments)
      FT_RETURN_IF_ERROR(findScalars(assignment.value));
    OwningOpRef<func::FuncOp> function = makeFunction(name, stage);
    for (const Assignment &assignment : stage.assignments) {
      FT_ASSIGN_OR_RETURN(values[assignment.name], valueOf(assignment.value));
    }
    SmallVector<Value> results;
    for (const std::string &result : stage.results)
      results.push_back(values.lookup(result));
    func::ReturnOp::create(b, loc, results);
    std::string formulas = "clip";
    for (const std::string &formula : scalars)
      formulas += "; " + formula;
    return UpdateBody{std::move(function), std::move(formulas), stage.states};
  }

private:
  // Those that are not known now, each once.
  absl::Status findScalars(const Expression &expression) {
    for (const Expression &operand : expression.operands)
      FT_RETURN_IF_ERROR(findScalars(operand));
    if (expression.kind != Expression::Kind::kBracket)
      return absl::OkStatus();
    std::string formula = withNumbers(expression.name, hyperparameters);
    FT_ASSIGN_OR_RETURN(const StepScalars read, ReadStepScalars(formula, 0));
    if (!IsConstant(read, 0) && !llvm::is_contained(scalars, formula))
      scalars.push_back(formula);
    return absl::OkStatus();
  }

  OwningOpRef<func::FuncOp> makeFunction(StringRef name, const Stage &stage) {
    const std::vector<std::string> &names = stage.inputs;
    SmallVector<Type> types(names.size(), block), results(stage.results.size(), block);
    types.append(scalars.size() + 1, scalar);
    auto function = func::FuncOp::create(loc, name, b.getFunctionType(types, results));
    function.setPrivate();
    function->setAttr(mlir::ft::kUpdateAttr, b.getUnitAttr());
    Block *entry = function.addEntryBlock();
    b.setInsertionPointToEnd(entry);
    for (auto [index, valueName] : llvm::enumerate(names))
      values[valueName] = entry->getArgument(index);
    for (auto [index, formula] : llvm::enumerate(scalars))
      numbers[formula] = entry->getArgument(names.size() + 1 + index);
    if (stage.clips)
      values[names[0]] =
          mlir::ft::MulOp::create(b, loc, ValueRange{values[names[0]], entry->getArgument(names.size())});
    return function;
  }

  absl::StatusOr<Value> valueOf(const Expression &expression) {
    switch (expression.kind) {
    case Expression::Kind::kNumber:
      return constant(expression.number);
    case Expression::Kind::kName:
      if (Value value = values.lookup(expression.name))
        return value;
      return absl::InvalidArgumentError(fmt::format("there is no '{}' yet", expression.name));
    case Expression::Kind::kBracket: {
      std::string formula = withNumbers(expression.name, hyperparameters);
      if (Value number = numbers.lookup(formula))
        return number;
      FT_ASSIGN_OR_RETURN(const StepScalars read, ReadStepScalars(formula, 0));
      return constant(StepScalarAt(read, 0, /*decays=*/false, 0, 0, 0));
    }
    case Expression::Kind::kCall:
      return call(expression);
    }
    return absl::InternalError("no such expression");
  }

  absl::StatusOr<Value> call(const Expression &expression) {
    SmallVector<Value> operands;
    for (const Expression &operand : expression.operands) {
      FT_ASSIGN_OR_RETURN(Value value, valueOf(operand));
      operands.push_back(value);
    }
    for (const ElementwiseRow &row : kElementwiseRows)
      if (row.name == expression.name && row.num_parameters() == 0 &&
          row.operands == static_cast<int>(operands.size())) {
        OperationState state(loc, ("ft." + StringRef(row.name)).str());
        SmallVector<Type> types(llvm::map_range(operands, [](Value value) { return value.getType(); }));
        mlir::ft::elementwise::build(row, b, state, mlir::ft::elementwise::inferType(row, types), operands,
                                     {});
        return b.create(state)->getResult(0);
      }
    return absl::InvalidArgumentError(
        fmt::format("no elementwise primitive '{}' has {} operands alone", expression.name, operands.size()));
  }

  // Rounded as the scalars of a step are.
  Value constant(double number) {
    return mlir::ft::FillOp::create(b, loc, scalar, b.getF64FloatAttr(static_cast<float>(number)));
  }

  OpBuilder b;
  Location loc;
  const Hyperparameters &hyperparameters;
  RankedTensorType scalar, block;
  std::vector<std::string> scalars;
  llvm::StringMap<Value> values, numbers; // by name, by formula
};

} // namespace

absl::StatusOr<std::vector<UpdateBody>> makeUpdateBodies(MLIRContext &context, std::string_view name,
                                                         const Update &update,
                                                         const Hyperparameters &hyperparameters) {
  FT_ASSIGN_OR_RETURN(std::vector<Assignment> assignments, parse(update.formulas));
  std::vector<std::string> inputs = {"gradient", "parameter"}, results = {"parameter"};
  inputs.insert(inputs.end(), update.states.begin(), update.states.end());
  results.insert(results.end(), update.states.begin(), update.states.end());
  std::vector<UpdateBody> bodies;
  const auto add = [&](StringRef suffix, const Stage &stage) -> absl::Status {
    FT_ASSIGN_OR_RETURN(UpdateBody body,
                        BodyBuilder(context, hyperparameters).build((StringRef(name) + suffix).str(), stage));
    bodies.push_back(std::move(body));
    return absl::OkStatus();
  };
  auto whole = llvm::find_if(assignments, [](const Assignment &assignment) {
    return assignment.value.kind == Expression::Kind::kCall && assignment.value.name == kOrthogonalized;
  });
  ArrayRef<Assignment> all = assignments;
  if (whole == assignments.end()) {
    FT_RETURN_IF_ERROR(add("", {all, inputs, results, update.states}));
    return bodies;
  }
  const std::string direction = whole->name;
  if (whole->value.operands.size() != 1)
    return absl::InvalidArgumentError(fmt::format("'{}' is of one value", kOrthogonalized));
  whole->value = Expression(whole->value.operands.front());
  const size_t before = whole - assignments.begin() + 1;
  inputs.erase(inputs.begin() + 1);
  results[0] = direction;
  FT_RETURN_IF_ERROR(add(".direction", {all.take_front(before), inputs, results, update.states}));
  FT_RETURN_IF_ERROR(
      add("", {all.drop_front(before), {direction, "parameter"}, {"parameter"}, {}, /*clips=*/false}));
  return bodies;
}

} // namespace ft::compiler
