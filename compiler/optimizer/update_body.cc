#include "compiler/optimizer/update_body.h"

#include "compiler/optimizer/formulas.h"
#include "dialects/ft/updates.h"
#include "runtime/base/status_macros.h"

namespace ft::compiler {
namespace {

using namespace mlir;

constexpr char kInverseRanks[] = "inverse_ranks";

// Of blocks: the first input comes from gradients, states are those of elements.
struct Part {
  std::string_view formulas;
  std::vector<std::string_view> inputs, results, states;
  std::optional<Reduced> gradient; // where the first input is that: how it was reduced
};

std::vector<std::string_view> statesOf(const Update &update) {
  std::vector<std::string_view> states;
  for (const OptimizerState &state : update.states)
    if (state.kind == StateLayoutKind::kElements)
      states.push_back(state.name);
  return states;
}

absl::StatusOr<UpdateBody> build(MLIRContext &context, StringRef name, const Part &part,
                                 const Hyperparameters &hyperparameters) {
  FT_ASSIGN_OR_RETURN(const std::vector<Assignment> assignments, parseFormulas(part.formulas));
  std::vector<std::string> scalars;
  if (part.gradient == Reduced::sum)
    scalars.push_back(kInverseRanks);
  FT_RETURN_IF_ERROR(findStepScalars(assignments, hyperparameters, scalars));
  OpBuilder b(&context);
  Location loc = b.getUnknownLoc();
  auto scalar = RankedTensorType::get({}, b.getF32Type());
  Type block = scalar.clone({mlir::ft::kBlockElements});
  SmallVector<Type> types(part.inputs.size(), block), results(part.results.size(), block);
  types.append(scalars.size() + 1, scalar);
  OwningOpRef<func::FuncOp> function = func::FuncOp::create(loc, name, b.getFunctionType(types, results));
  function->setPrivate();
  function.get()->setAttr(mlir::ft::kUpdateAttr, b.getUnitAttr());
  Block *entry = function->addEntryBlock();
  b.setInsertionPointToEnd(entry);
  FormulaBuilder values(b, hyperparameters);
  const size_t first = part.inputs.size();
  for (auto [index, input] : llvm::enumerate(part.inputs))
    values.set(input, entry->getArgument(index));
  for (auto [index, formula] : llvm::enumerate(scalars))
    values.setScalar(formula, entry->getArgument(first + 1 + index));
  if (part.gradient) {
    Value mean = entry->getArgument(0);
    if (part.gradient == Reduced::sum)
      mean = values.elementwise("mul", {mean, entry->getArgument(first + 1)});
    values.set(part.inputs[0], values.elementwise("mul", {mean, entry->getArgument(first)}));
  }
  FT_RETURN_IF_ERROR(values.run(assignments));
  SmallVector<Value> returned;
  for (std::string_view result : part.results)
    returned.push_back(values.get(result));
  func::ReturnOp::create(b, loc, returned);
  return UpdateBody{std::move(function), stepScalarFormulas(scalars), part.states};
}

std::vector<std::string_view> joined(std::vector<std::string_view> names,
                                     const std::vector<std::string_view> &states) {
  names.insert(names.end(), states.begin(), states.end());
  return names;
}

} // namespace

absl::StatusOr<UpdateBody> makeUpdateBody(MLIRContext &context, std::string_view name, const Update &update,
                                          const Hyperparameters &hyperparameters, Reduced gradient) {
  if (update.looksAtWhole())
    return build(context, name,
                 {update.formulas, {"direction", "parameter"}, {"parameter"}, {}, std::nullopt},
                 hyperparameters);
  const auto states = statesOf(update);
  return build(context, name,
               {update.formulas, joined({"gradient", "parameter"}, states), joined({"parameter"}, states),
                states, gradient},
               hyperparameters);
}

absl::StatusOr<UpdateBody> makeDirectionBody(MLIRContext &context, std::string_view name,
                                             const Update &update, const Hyperparameters &hyperparameters,
                                             Reduced gradient) {
  const auto states = statesOf(update);
  return build(
      context, (StringRef(name) + ".direction").str(),
      {update.direction, joined({"gradient"}, states), joined({"direction"}, states), states, gradient},
      hyperparameters);
}

} // namespace ft::compiler
