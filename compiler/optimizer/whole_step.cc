#include "compiler/optimizer/whole_step.h"

#include "fmt/format.h"
#include "runtime/base/status_macros.h"

namespace ft::compiler {

using namespace mlir;
using mlir::ft::CallOp;
using mlir::ft::PackOp;
using mlir::ft::ParameterOp;

static int64_t elementsOf(const OptimizerState &state, RankedTensorType parameter) {
  return StateElements(state.kind, parameter.getShape());
}

static StringRef unitOf(PackOp pack) {
  return cast<mlir::ft::FlatType>(pack.getFlat().getType()).getUnit().getValue();
}

absl::StatusOr<WholeStep> WholeStep::create(std::string_view rule, const Update &update,
                                            const Hyperparameters &hyperparameters) {
  WholeStep step;
  step.rule = rule;
  step.hyperparameters = hyperparameters;
  for (const OptimizerState &state : update.states)
    if (state.kind != StateLayoutKind::kElements)
      step.states.push_back(state);
  FT_ASSIGN_OR_RETURN(step.matrices, parseFormulas(update.matrices));
  if (!update.vectors.empty()) {
    FT_ASSIGN_OR_RETURN(step.vectors, parseFormulas(update.vectors));
  }
  FT_RETURN_IF_ERROR(findStepScalars(step.matrices, hyperparameters, step.numbers));
  FT_RETURN_IF_ERROR(findStepScalars(step.vectors, hyperparameters, step.numbers));
  return step;
}

std::string WholeStep::scalars() const { return stepScalarFormulas(numbers); }

bool WholeStep::orthogonalizes() const {
  return matrices.size() == 1 && matrices[0].value.name == "orthogonalized";
}

absl::StatusOr<Value> WholeStep::insert(OpBuilder &builder, PackOp pack, Value direction, Value scalars,
                                        SymbolTable &symbols) {
  SmallVector<UnitState> unit = load(builder, pack, symbols);
  SmallVector<Value> directions;
  for (auto name : pack.getParameters().getAsRange<FlatSymbolRefAttr>()) {
    FT_ASSIGN_OR_RETURN(Value directed, direct(builder, name, direction, scalars, unit, symbols));
    directions.push_back(directed);
  }
  store(builder, pack, unit, symbols);
  return PackOp::create(builder, pack.getLoc(), direction.getType(), directions, pack.getParametersAttr())
      .getFlat();
}

SmallVector<WholeStep::UnitState> WholeStep::load(OpBuilder &builder, PackOp pack,
                                                  SymbolTable &symbols) const {
  SmallVector<UnitState> unit;
  for (const OptimizerState &state : states) {
    int64_t elements = 0;
    for (auto name : pack.getParameters().getAsRange<FlatSymbolRefAttr>())
      elements +=
          elementsOf(state, cast<RankedTensorType>(symbols.lookup<ParameterOp>(name.getValue()).getType()));
    if (elements == 0)
      continue;
    auto type = RankedTensorType::get({elements}, builder.getF32Type());
    Value before = mlir::ft::LoadStateOp::create(builder, pack.getLoc(), type, unitOf(pack), state.name,
                                                 static_cast<mlir::ft::StateLayout>(state.kind));
    unit.push_back({&state, before});
  }
  return unit;
}

void WholeStep::store(OpBuilder &builder, PackOp pack, ArrayRef<UnitState> unit, SymbolTable &symbols) {
  for (const UnitState &state : unit) {
    Value after = state.after.front();
    if (state.after.size() > 1) {
      func::FuncOp join = joinOf(TypeRange(ValueRange(state.after)), symbols);
      after = CallOp::create(builder, pack.getLoc(), join.getResultTypes(), join.getSymName(), state.after,
                             DenseI64ArrayAttr(), DenseI64ArrayAttr())
                  .getResult(0);
    }
    mlir::ft::StoreStateOp::create(builder, pack.getLoc(), after, unitOf(pack), state.state->name,
                                   static_cast<mlir::ft::StateLayout>(state.state->kind));
  }
}

absl::StatusOr<Value> WholeStep::direct(OpBuilder &builder, FlatSymbolRefAttr name, Value direction,
                                        Value scalars, MutableArrayRef<UnitState> unit,
                                        SymbolTable &symbols) {
  auto parameter = symbols.lookup<ParameterOp>(name.getValue());
  auto type = cast<RankedTensorType>(parameter.getType());
  Location loc = parameter.getLoc();
  const bool isMatrix = type.getRank() >= 2;
  if (!isMatrix && vectors.empty())
    return absl::InvalidArgumentError(
        fmt::format("{} has no formulas for '{}', which is no matrix", rule, name.getValue().str()));
  Type viewed = type.clone(cast<mlir::ft::FlatType>(direction.getType()).getElementType());
  Value view = mlir::ft::ViewOp::create(builder, loc, viewed, direction, name);
  if (orthogonalizes())
    return mlir::ft::OrthogonalizeOp::create(builder, loc, view).getResult();
  WholeBody body{rule, type, {}, isMatrix ? matrices : vectors, numbers};
  SmallVector<Value> operands = {view};
  if (body.takesParameter())
    operands.push_back(mlir::ft::GetOp::create(builder, loc, type, name));
  SmallVector<UnitState *> changed;
  for (UnitState &state : unit)
    if (int64_t elements = elementsOf(*state.state, type)) {
      body.parts.push_back(
          {state.state, cast<RankedTensorType>(state.before.getType()), state.used, elements});
      operands.push_back(state.before);
      changed.push_back(&state);
    }
  operands.push_back(scalars);
  func::FuncOp &composite = composites[body.key()];
  if (!composite) {
    FT_ASSIGN_OR_RETURN(OwningOpRef<func::FuncOp> made, makeWholeBody(body, hyperparameters));
    composite = made.release();
    symbols.insert(composite);
  }
  SmallVector<Type> results(composite.getResultTypes());
  results[0] = viewed;
  auto call = CallOp::create(builder, loc, results, composite.getSymName(), operands, DenseI64ArrayAttr(),
                             DenseI64ArrayAttr());
  for (auto [state, part] : llvm::zip_equal(changed, call.getResults().drop_front())) {
    state->used += cast<RankedTensorType>(part.getType()).getNumElements();
    state->after.push_back(part);
  }
  return call.getResult(0);
}

func::FuncOp WholeStep::joinOf(TypeRange parts, SymbolTable &symbols) {
  int64_t elements = 0;
  std::string key = "join";
  for (Type part : parts) {
    elements += cast<RankedTensorType>(part).getNumElements();
    key += fmt::format(" {}", cast<RankedTensorType>(part).getNumElements());
  }
  func::FuncOp &join = composites[key];
  if (join)
    return join;
  OpBuilder b(parts.front().getContext());
  Location loc = b.getUnknownLoc();
  auto all = RankedTensorType::get({elements}, b.getF32Type());
  join = func::FuncOp::create(loc, rule + ".join", b.getFunctionType(parts, {all}));
  join.setPrivate();
  join->setAttr(mlir::ft::kCompositeAttr, b.getUnitAttr());
  join.setResultAttr(0, mlir::ft::kStatisticAttr, b.getUnitAttr());
  Block *entry = join.addEntryBlock();
  b.setInsertionPointToEnd(entry);
  Value joined = mlir::ft::ConcatOp::create(b, loc, all, entry->getArguments(), 0);
  func::ReturnOp::create(b, loc, joined);
  symbols.insert(join);
  return join;
}

} // namespace ft::compiler
