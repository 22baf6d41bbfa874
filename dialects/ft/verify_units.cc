// Verifiers of units, collectives and the optimizer.
#include "dialects/ft/symbols.h"
#include "dialects/ft/verify.h"

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

LogicalResult verifyAccumulator(Operation *op, llvm::StringRef name, Value value) {
  if (!value)
    return success();
  return verify::shapeIs(op, name, value, {kAccumulatorWords}, "the words of an exact sum");
}

LogicalResult verifyRange(Operation *op, llvm::StringRef name, double value, bool inRange,
                          llvm::StringRef range) {
  if (inRange)
    return success();
  return op->emitOpError() << name << " is " << value << "; expected " << range;
}

// Triples begin, end, decays in increasing order, ends not beyond `elements`.
LogicalResult verifySegments(Operation *op, llvm::ArrayRef<int64_t> segments, int64_t elements) {
  if (segments.size() % 3 != 0)
    return op->emitOpError() << "segments has " << segments.size()
                             << " numbers; expected triples of begin, end, decay";
  int64_t last = 0;
  for (size_t i = 0; i < segments.size(); i += 3) {
    int64_t begin = segments[i], end = segments[i + 1], decay = segments[i + 2];
    if (begin < last || end <= begin || end > elements || decay < 0 || decay > 1)
      return op->emitOpError() << "segment " << i / 3 << " is " << begin << ", " << end << ", " << decay
                               << "; expected begin < end after " << last << " and within the unit's "
                               << elements << " elements, and decay 0 or 1";
    last = end;
  }
  return success();
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

namespace {

// One stream for each segment, and the generator's state.
template <typename Op> LogicalResult verifyRounding(Op op) {
  std::optional<llvm::ArrayRef<int64_t>> streams = op.getStochasticRounding();
  if (streams.has_value() != static_cast<bool>(op.getRng()))
    return op.emitOpError("takes rng exactly with stochastic_rounding");
  if (!streams)
    return success();
  if (streams->size() != op.getSegments().size() / 3)
    return op.emitOpError() << "stochastic_rounding has " << streams->size() << " streams for "
                            << op.getSegments().size() / 3 << " segments";
  for (int64_t stream : *streams)
    if (failed(verifyRange(op, "a stream of stochastic_rounding", double(stream),
                           stream >= 0 && stream < int64_t{1} << 31, "0 or more, below 2^31")))
      return failure();
  return verify::shapeIs(op, "rng", op.getRng(), {3}, "seed, micro-step, rank");
}

// What all optimizers have in common.
template <typename Op> LogicalResult verifyOptimizer(Op op) {
  double decay = op.getWeightDecay().convertToDouble();
  if (failed(verifyRange(op, "weight_decay", decay, decay >= 0, "0 or more")))
    return failure();
  auto step = RankedTensorType::get({}, IntegerType::get(op.getContext(), 64));
  if (op.getStep().getType() != step)
    return op.emitOpError() << "step is " << op.getStep().getType() << "; expected " << step;
  if (failed(verifyRounding(op)))
    return failure();
  if (unitOf(op.getGradient().getType()) == op.getUnitAttr())
    return success();
  return op.emitOpError() << "updates unit " << op.getUnitAttr() << " with a gradient of "
                          << unitOf(op.getGradient().getType());
}

template <typename Op> LogicalResult verifyMoments(Op op) {
  double beta1 = op.getBeta1().convertToDouble(), beta2 = op.getBeta2().convertToDouble();
  double eps = op.getEps().convertToDouble();
  if (failed(verifyRange(op, "beta1", beta1, beta1 >= 0 && beta1 < 1, "0 or more, below 1")) ||
      failed(verifyRange(op, "beta2", beta2, beta2 >= 0 && beta2 < 1, "0 or more, below 1")) ||
      failed(verifyRange(op, "eps", eps, eps >= 0, "0 or more")))
    return failure();
  return verifyOptimizer(op);
}

template <typename Op> LogicalResult verifyOptimizerSymbols(Op op, SymbolTableCollection &symbols) {
  UnitOp unit = verify::unit(op, symbols, op.getUnitAttr());
  return unit ? verifySegments(op, op.getSegments(), unit.getElements()) : failure();
}

} // namespace

LogicalResult AdamwOp::verify() { return verifyMoments(*this); }
LogicalResult AdamOp::verify() { return verifyMoments(*this); }

LogicalResult SgdOp::verify() {
  double momentum = getMomentum().convertToDouble();
  if (failed(verifyRange(*this, "momentum", momentum, momentum >= 0 && momentum < 1, "0 or more, below 1")))
    return failure();
  return verifyOptimizer(*this);
}

LogicalResult AdamwOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyOptimizerSymbols(*this, symbols);
}
LogicalResult AdamOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyOptimizerSymbols(*this, symbols);
}
LogicalResult SgdOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyOptimizerSymbols(*this, symbols);
}

llvm::SmallVector<llvm::StringRef> AdamwOp::getStateRoles() { return {"exp_avg", "exp_avg_sq"}; }
llvm::SmallVector<llvm::StringRef> AdamOp::getStateRoles() { return {"exp_avg", "exp_avg_sq"}; }
llvm::SmallVector<llvm::StringRef> SgdOp::getStateRoles() {
  if (getMomentum().isZero())
    return {};
  return {"momentum"};
}

} // namespace mlir::ft
