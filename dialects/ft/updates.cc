#include "dialects/ft/updates.h"

#include "dialects/ft/symbols.h"
#include "dialects/ft/verify.h"
#include "runtime/base/step_scalar_formulas.h"

namespace mlir::ft {
namespace {

// The generator's state and the step, or neither.
LogicalResult verifyRounding(UpdateOp op) {
  if (!op.roundsStochastically())
    return success();
  if (op.getRounding().size() != 2)
    return op.emitOpError("takes rng and step beside gradient and scalars, or neither");
  if (failed(verify::shapeIs(op, "rng", op.getRounding()[0], {3}, "seed, micro-step, rank")))
    return failure();
  return verify::shapeIs(op, "step", op.getRounding()[1], {}, "steps so far");
}

FlatSymbolRefAttr unitOf(Type buffer) {
  if (auto flat = dyn_cast<FlatType>(buffer))
    return flat.getUnit();
  return cast<SliceType>(buffer).getUnit();
}

// Gradient, parameter (but for a direction), states, then scalars, of which there is one at least; returns
// parameter or direction, and states.
LogicalResult verifyBody(UpdateOp op, func::FuncOp body) {
  if (!isUpdate(body) && !isCluster(body))
    return op.emitOpError() << "runs " << op.getBodyAttr() << ", which has no attribute " << kUpdateAttr;
  const size_t blocks = (op.getDirection() ? 1 : 2) + op.getStates().size();
  int64_t scalars = static_cast<int64_t>(body.getNumArguments()) - static_cast<int64_t>(blocks);
  if (scalars < 1 || scalars != op.getScalars().getType().getShape().back())
    return op.emitOpError() << op.getBodyAttr() << " takes " << body.getNumArguments() << " arguments, with "
                            << op.getStates().size() << " states and scalars of type "
                            << op.getScalars().getType();
  if (!isUpdate(body))
    return success();
  auto block = RankedTensorType::get({kBlockElements}, Float32Type::get(op.getContext()));
  for (auto [index, type] : llvm::enumerate(body.getArgumentTypes()))
    if (type != (index < blocks ? block : block.clone(ArrayRef<int64_t>())))
      return op.emitOpError() << op.getBodyAttr() << " takes " << type << " as argument " << index + 1
                              << "; expected blocks of " << kBlockElements << " elements, then scalars";
  if (body.getNumResults() == 1 + op.getStates().size() &&
      llvm::all_of(body.getResultTypes(), [&](Type type) { return type == block; }))
    return success();
  return op.emitOpError() << op.getBodyAttr() << " returns other than the "
                          << (op.getDirection() ? "direction" : "parameter") << " and "
                          << op.getStates().size() << " states";
}

} // namespace

func::FuncOp bodyOf(UpdateOp update) { return functionOf(update, update.getBodyAttr()); }

LogicalResult UpdateScalarsOp::verify() {
  auto step = RankedTensorType::get({}, IntegerType::get(getContext(), 64));
  if (getStep().getType() != step)
    return emitOpError() << "step is " << getStep().getType() << "; expected " << step;
  double decay = getWeightDecay().convertToDouble();
  if (!(decay >= 0))
    return emitOpError() << "weight_decay is " << decay << "; expected 0 or more";
  absl::StatusOr<::ft::StepScalars> formulas = ::ft::ReadStepScalars(getFormulas(), decay);
  if (!formulas.ok())
    return emitOpError() << "formulas: " << std::string(formulas.status().message());
  if (::ft::UsesInverseRanks(*formulas) != (getInverseRanks() != nullptr))
    return emitOpError(getInverseRanks() ? "takes inverse_ranks, which no formula names"
                                         : "has a formula that names inverse_ranks, which it does not take");
  return verify::shapeIs(*this, "scalars", getScalars(), {2, formulas->count},
                         "without and with weight decay, formulas");
}

LogicalResult UpdateOp::verify() {
  if (getScalars().getType().getRank() != 2 || getScalars().getType().getShape()[0] != 2)
    return emitOpError() << "scalars are " << getScalars().getType()
                         << "; expected those of ft.update_scalars";
  if (failed(verifyRounding(*this)))
    return failure();
  if (getDirection() && (unitOf(getDirection().getType()) != getUnitAttr() ||
                         isa<FlatType>(getDirection().getType()) != isa<FlatType>(getGradient().getType())))
    return emitOpError() << "gives " << getDirection().getType() << " for a gradient "
                         << getGradient().getType();
  if (getDirection() && roundsStochastically())
    return emitOpError("rounds no parameter stochastically where it gives a direction");
  if (unitOf(getGradient().getType()) == getUnitAttr())
    return success();
  return emitOpError() << "updates unit " << getUnitAttr() << " with a gradient of "
                       << unitOf(getGradient().getType());
}

LogicalResult UpdateOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (!verify::unit(*this, symbols, getUnitAttr()))
    return failure();
  func::FuncOp body = verify::function(*this, symbols, getBodyAttr());
  return body ? verifyBody(*this, body) : failure();
}

} // namespace mlir::ft
