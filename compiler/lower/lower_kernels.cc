// Computation: one kernel for an op.
#include "compiler/lower/function_lowering.h"

namespace ft::compiler {

using namespace mlir;
using namespace mlir::ft;
using mlir::ftx::MemoryClass;
using mlir::ftx::View;

namespace {

// "transformer.h.0.matmul"
std::string kernelNameOf(Operation *op) {
  StringAttr layer = getLayer(op);
  return (layer ? layer.getValue() + "." : Twine()).str() + op->getName().stripDialect().str();
}

} // namespace

SmallVector<NamedAttribute> kernelAttributes(Operation *op) {
  Builder builder(op->getContext());
  auto kernel = dyn_cast<KernelOpInterface>(op);
  ArrayRef<StringRef> optional = kernel ? kernel.getOptionalAttributes() : ArrayRef<StringRef>();
  SmallVector<NamedAttribute> result;
  // All else follows from the body.
  if (auto cluster = dyn_cast<ClusterOp>(op)) {
    result.push_back(builder.getNamedAttr("body", cluster.getBodyAttr()));
    if (DenseI64ArrayAttr streams = cluster.getStreamsAttr())
      result.push_back(builder.getNamedAttr("streams", streams));
    return result;
  }
  for (StringAttr name : op->getName().getAttributeNames()) {
    if (name.getValue() == "operandSegmentSizes" || name.getValue() == "partial_bytes")
      continue;
    Attribute value = op->getInherentAttr(name).value_or(Attribute());
    bool isBody = name.getValue() == "body";
    if ((isa_and_nonnull<FlatSymbolRefAttr>(value) && !isBody) ||
        (!value && llvm::is_contained(optional, name.getValue())))
      continue;
    if (!value || isa<UnitAttr>(value))
      value = builder.getBoolAttr(static_cast<bool>(value));
    result.emplace_back(name, value);
  }
  return result;
}

void FunctionLowering::lowerKernel(KernelOpInterface op) {
  KernelSpec spec{
      .name = op.getKernelName(), .ins = {}, .outs = {}, .workspace = {}, .attributes = kernelAttributes(op)};
  llvm::SmallDenseMap<Value, View> accumulated;
  for (OpResult result : op->getResults()) {
    View place = placeResult(result);
    if (Value operand = tiedOperand(op, result.getResultNumber()))
      accumulated[operand] = place; // the kernel finds there what it adds to
    places[result] = place;
    spec.outs.push_back(place);
  }
  for (Value operand : op.getKernelOperands()) {
    auto tied = accumulated.find(operand);
    spec.ins.push_back(!operand ? View() : tied != accumulated.end() ? tied->second : places[operand]);
  }
  auto scratch = static_cast<int64_t>(op.getWorkspaceBytes(DeviceClass::kCpu));
  auto onCuda = static_cast<int64_t>(op.getWorkspaceBytes(DeviceClass::kCuda));
  if (scratch != 0 || onCuda != 0)
    spec.workspace =
        program.buffer(op.getLoc(), {.name = kernelNameOf(op) + ".workspace",
                                     .memoryClass = MemoryClass::workspace,
                                     .bytes = scratch,
                                     .cudaBytes = onCuda != scratch ? std::optional(onCuda) : std::nullopt,
                                     .layer = getLayer(op)});
  if (auto cost = dyn_cast<CostOpInterface>(op.getOperation())) {
    spec.flops = cost.getFlops();
    spec.modelFlops = cost.getModelFlops();
    spec.bytes = cost.getBytes();
  }
  program.kernel(spec, Tag::of(op));
}

uint64_t FunctionLowering::bytesAt(const View &view) const {
  if (auto tensor = dyn_cast<RankedTensorType>(view.type))
    return bytesOf(tensor);
  FlatSymbolRefAttr unit = view.buffer.getDefiningOp<mlir::ftx::BufferOp>().getUnitAttr();
  return bytesOf(view.type) * UnitOp(state.unit(unit.getValue()).unit).getElements();
}

/// What is packed lies where its sum does; what is reduced first, and tensors, have a place of their own.
static LogicalResult expectPlace(mlir::ft::MicroStepSumOpInterface sum) {
  if (sum.getInPlace() || !isa_and_nonnull<PackOp>(sum.getX().getDefiningOp()))
    return success();
  return sum->emitError("adds up what is packed in a place of its own; run ft-accumulate-in-place before");
}

LogicalResult FunctionLowering::lowerAccumulate(AccumulateOp op) {
  if (failed(expectPlace(op)))
    return failure();
  if (op.getInPlace())
    return success();
  View x = places[op.getX()], sum = state.sum(op.getName(), op.getX().getType());
  program.kernel(
      {.name = "accumulate", .ins = {x, sum}, .outs = {sum}, .bytes = bytesAt(x) + 2 * bytesAt(sum)},
      Tag::of(op));
  return success();
}

LogicalResult FunctionLowering::lowerAccumulated(AccumulatedOp op) {
  if (failed(expectPlace(op)))
    return failure();
  if (!op.getInPlace() && op.getX().getType() != op.getResult().getType())
    return op.emitError() << "rounds " << op.getX().getType() << " to " << op.getResult().getType()
                          << " in its place";
  // In the place of what it adds the sum to, where nobody else reads that.
  bool isApart = isa<RankedTensorType>(op.getX().getType()) && !op.getInPlace() &&
                 !(owns(op.getX()) && uses.canOverwrite(op.getX(), op));
  View x = places[op.getX()], sum = state.sum(op.getName(), op.getX().getType()),
       result = isApart ? newBuffer(op->getOpResult(0)) : x;
  uint64_t bytes = 2 * bytesAt(sum);
  if (op.getInPlace()) {
    result = {placeForReduction(op.getResult(), Tag::of(op)), 0, elementOf(op.getResult().getType())};
    x = View();
  } else {
    bytes += bytesAt(x);
  }
  program.kernel(
      {.name = "accumulated", .ins = {x, sum}, .outs = {result, sum}, .bytes = bytes + bytesAt(result)},
      Tag::of(op));
  places[op.getResult()] = result;
  return success();
}

void FunctionLowering::lowerUpdateScaler(UpdateScalerOp op) {
  View scaler = places[op.getScaler()];
  SmallVector<View> ins = {places[op.getCoefficient()]};
  if (op.getFactor())
    ins.push_back(places[op.getFactor()]);
  program.kernel({.name = "update_scaler", .ins = ins, .outs = {scaler}, .attributes = kernelAttributes(op)},
                 Tag::of(op));
  program.output(kScalerInput, scaler);
}

} // namespace ft::compiler
