// Verifiers of units, collectives and the optimizer.
#include "dialects/ft/symbols.h"
#include "dialects/ft/verify.h"
#include "runtime/base/state_shape.h"

namespace mlir::ft {
namespace {

FlatSymbolRefAttr unitOf(Type buffer) {
  if (auto flat = dyn_cast<FlatType>(buffer))
    return flat.getUnit();
  return cast<SliceType>(buffer).getUnit();
}

Type elementOf(Type buffer) {
  if (auto flat = dyn_cast<FlatType>(buffer))
    return flat.getElementType();
  return cast<SliceType>(buffer).getElementType();
}

LogicalResult verifySameUnit(Operation *op, Type from, Type to) {
  if (unitOf(from) != unitOf(to))
    return op->emitOpError() << "takes unit " << unitOf(from) << " but gives unit " << unitOf(to);
  if (elementOf(from) != elementOf(to))
    return op->emitOpError() << "takes elements of type " << elementOf(from) << " but gives "
                             << elementOf(to);
  return success();
}

// `type` is that of the parameter, but with the element type of the buffer, and the parameter lies in the
// buffer's unit.
LogicalResult verifyInUnit(Operation *op, SymbolTableCollection &symbols, FlatSymbolRefAttr name, Type type,
                           Type buffer) {
  ParameterOp parameter = verify::parameter(op, symbols, name);
  if (!parameter)
    return failure();
  if (parameter.getUnitAttr() != unitOf(buffer)) {
    InFlightDiagnostic error = op->emitOpError() << name;
    if (parameter.getUnitAttr())
      error << " lies in unit " << parameter.getUnitAttr();
    else
      error << " lies in no unit yet";
    return error << ", not in " << unitOf(buffer);
  }
  auto expected = cast<RankedTensorType>(parameter.getType()).clone(elementOf(buffer));
  if (type == expected)
    return success();
  return op->emitOpError() << name << " is given type " << type << "; expected " << expected;
}

// As many elements as the parameters of the unit have in this layout.
LogicalResult verifyState(Operation *op, SymbolTableCollection &symbols, FlatSymbolRefAttr name,
                          StateLayout layout, Value value) {
  UnitOp unit = verify::unit(op, symbols, name);
  if (!unit)
    return failure();
  if (layout == StateLayout::elements)
    return op->emitOpError("has an element for each of the unit's, which ft.update reads and writes");
  int64_t elements = 0;
  for (ParameterOp parameter : unit->getParentOfType<ModuleOp>().getOps<ParameterOp>())
    if (parameter.getUnitAttr() == name)
      elements += ::ft::StateElements(static_cast<::ft::StateLayoutKind>(layout),
                                      cast<RankedTensorType>(parameter.getType()).getShape());
  return verify::shapeIs(op, "value", value, {elements}, "what the unit's parameters have of this layout");
}

// Groups of whole parameters of one shape; slices, one for each unit that has some of them, of one type.
template <typename MoveOp> LogicalResult verifyMove(MoveOp op) {
  ArrayRef<int64_t> groups = op.getGroups();
  size_t count = op.getParameters().size(), grouped = 0;
  for (int64_t group : groups)
    grouped += static_cast<size_t>(std::max<int64_t>(group, 0));
  if (count == 0 || op.getValues().size() != count || grouped != count ||
      llvm::any_of(groups, [](int64_t group) { return group < 1; }))
    return op.emitOpError() << "has " << op.getValues().size() << " values and groups of " << grouped
                            << " for " << count << " parameters";
  size_t next = 0;
  for (int64_t group : groups)
    for (int64_t i = 0; i < group; ++i, ++next)
      if (op.getValues()[next].getType() != op.getValues()[next - static_cast<size_t>(i)].getType())
        return op.emitOpError() << "has values of different types in a group";
  return success();
}

template <typename MoveOp> LogicalResult verifyMoved(MoveOp op, SymbolTableCollection &symbols) {
  llvm::SmallDenseMap<Attribute, Type> slices;
  for (Value slice : op.getSlices())
    if (!slices.insert({unitOf(slice.getType()), slice.getType()}).second)
      return op.emitOpError() << "has two slices of unit " << unitOf(slice.getType());
  for (auto [value, name] :
       llvm::zip_equal(op.getValues(), op.getParameters().template getAsRange<FlatSymbolRefAttr>())) {
    ParameterOp parameter = verify::parameter(op, symbols, name);
    if (!parameter)
      return failure();
    Type slice = slices.lookup(parameter.getUnitAttr());
    if (!slice)
      return op.emitOpError() << "has no slice of the unit of " << name;
    if (failed(verifyInUnit(op, symbols, name, value.getType(), slice)))
      return failure();
  }
  return success();
}

LogicalResult verifyAccumulator(Operation *op, llvm::StringRef name, Value value) {
  if (!value)
    return success();
  return verify::shapeIs(op, name, value, {kAccumulatorWords}, "the words of an exact sum");
}

LogicalResult verifyCount(Operation *op, Value value) {
  return verify::shapeIs(op, "count", value, {2}, "of those that count and of all");
}

LogicalResult verifyRange(Operation *op, llvm::StringRef name, double value, bool inRange,
                          llvm::StringRef range) {
  if (inRange)
    return success();
  return op->emitOpError() << name << " is " << value << "; expected " << range;
}

} // namespace

LogicalResult ShardOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (!verify::unit(*this, symbols, getUnitAttr()))
    return failure();
  if (getSlice().getType().getUnit() == getUnitAttr())
    return success();
  return emitOpError() << "names unit " << getUnitAttr() << " but gives a slice of "
                       << getSlice().getType().getUnit();
}

// An f32 slice may be rounded before it travels.
LogicalResult GatherOp::verify() {
  SliceType slice = getSlice().getType();
  FlatType flat = getFlat().getType();
  if (slice.getElementType().isF32() && slice.getUnit() == flat.getUnit())
    return success();
  return verifySameUnit(*this, slice, flat);
}

LogicalResult FetchOp::verify() { return verifySameUnit(*this, getSlice().getType(), getFlat().getType()); }

LogicalResult RefreshOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return success(verify::unit(*this, symbols, getUnitAttr()) != nullptr);
}

LogicalResult ReduceScatterOp::verify() {
  return verifySameUnit(*this, getFlat().getType(), getSlice().getType());
}

LogicalResult AllReduceOp::verify() {
  auto tensor = dyn_cast<RankedTensorType>(getX().getType());
  if (!tensor || tensor.getElementType().isInteger(64) || tensor.getElementType().isF32())
    return success();
  return emitOpError() << "reduces elements of type " << tensor.getElementType() << "; expected f32 or i64";
}

LogicalResult ViewOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyInUnit(*this, symbols, getParameterAttr(), getType(), getFlat().getType());
}

LogicalResult PackOp::verify() {
  if (getValues().size() == getParameters().size())
    return success();
  return emitOpError() << "has " << getValues().size() << " values for " << getParameters().size()
                       << " parameters";
}

LogicalResult PackOp::verifySymbolUses(SymbolTableCollection &symbols) {
  for (auto [value, name] : llvm::zip_equal(getValues(), getParameters().getAsRange<FlatSymbolRefAttr>()))
    if (failed(verifyInUnit(*this, symbols, name, value.getType(), getFlat().getType())))
      return failure();
  return success();
}

LogicalResult DistributeOp::verify() { return verifyMove(*this); }
LogicalResult CollectOp::verify() { return verifyMove(*this); }

LogicalResult DistributeOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyMoved(*this, symbols);
}
LogicalResult CollectOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyMoved(*this, symbols);
}

LogicalResult OrthogonalizeOp::verify() {
  return verify::minRank(*this, "x", getX(), 2, "[..., rows, columns]");
}

LogicalResult LoadStateOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyState(*this, symbols, getUnitAttr(), getLayout(), getValue());
}

LogicalResult StoreStateOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyState(*this, symbols, getUnitAttr(), getLayout(), getValue());
}

LogicalResult SumSquaresOp::verify() {
  if (failed(verifyAccumulator(*this, "acc", getAcc())))
    return failure();
  return verifyAccumulator(*this, "sum", getSum());
}

LogicalResult ClipCoefficientOp::verify() {
  double maxNorm = getMaxNorm().convertToDouble();
  if (failed(verifyRange(*this, "max_norm", maxNorm, maxNorm >= 0, "0 (no clipping) or more")) ||
      failed(verify::scaler(*this, getScaler())))
    return failure();
  return verifyAccumulator(*this, "sum", getSum());
}

LogicalResult CountTargetsOp::verify() {
  int64_t all = verify::tensor(getTargets()).getNumElements(), of = getOf();
  if (failed(verifyRange(*this, "of", double(of), of >= 1 && of <= all, "1 to the number of targets")))
    return failure();
  return verifyCount(*this, getCount());
}

LogicalResult CountedMeanOp::verify() { return verifyCount(*this, getCount()); }

LogicalResult LossScaleOp::verify() { return verify::scaler(*this, getScaler()); }

LogicalResult UpdateScalerOp::verify() {
  double growth = getGrowthFactor().convertToDouble(), backoff = getBackoffFactor().convertToDouble();
  double least = getMinScale().convertToDouble();
  auto atLeastOne = [&](llvm::StringRef name, int64_t value) {
    return verifyRange(*this, name, double(value), value >= 1, "1 or more");
  };
  if (failed(verify::scaler(*this, getScaler())) ||
      failed(verifyRange(*this, "growth_factor", growth, growth >= 1, "1 or more")) ||
      failed(verifyRange(*this, "backoff_factor", backoff, backoff > 0 && backoff <= 1,
                         "more than 0, at most 1")) ||
      failed(verifyRange(*this, "min_scale", least, least >= 0, "0 or more")) ||
      failed(atLeastOne("growth_interval", getGrowthInterval())) ||
      failed(atLeastOne("hysteresis", getHysteresis())))
    return failure();
  if (getScaler().getDefiningOp<InputOp>())
    return success();
  return emitOpError("scaler is not an ft.input; expected ft.input \"scaler\", which is changed in place");
}

} // namespace mlir::ft
