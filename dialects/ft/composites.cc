#include "dialects/ft/composites.h"

#include "dialects/ft/clusters.h"
#include "dialects/ft/symbols.h"

namespace mlir::ft {
namespace {

// A float tensor may stand where another float tensor of its shape is meant.
bool fits(Type given, Type declared) {
  if (given == declared)
    return true;
  auto from = dyn_cast<RankedTensorType>(given), to = dyn_cast<RankedTensorType>(declared);
  return from && to && from.getShape() == to.getShape() && isa<FloatType>(from.getElementType()) &&
         isa<FloatType>(to.getElementType());
}

LogicalResult verifyTypes(CallOp call, StringRef what, TypeRange given, TypeRange declared) {
  if (given.size() != declared.size())
    return call.emitOpError() << "has " << given.size() << " " << what << "s; @" << call.getCallee()
                              << " has " << declared.size();
  for (auto [i, types] : llvm::enumerate(llvm::zip_equal(given, declared)))
    if (!fits(std::get<0>(types), std::get<1>(types)))
      return call.emitOpError() << what << " " << i << " is " << std::get<0>(types) << "; @"
                                << call.getCallee() << " has " << std::get<1>(types);
  return success();
}

// The sum of a cost over the ops of a function.
uint64_t sumOver(func::FuncOp function, uint64_t (CostOpInterface::*cost)()) {
  uint64_t sum = 0;
  if (function)
    for (auto op : function.getOps<CostOpInterface>())
      sum += (op.*cost)();
  return sum;
}

// A body that comes after a product; in the types of the op's, or in f32 where it is a composite.
LogicalResult verifyThen(Operation *op, SymbolTableCollection &symbols, FlatSymbolRefAttr name,
                         TypeRange operands, Type result) {
  func::FuncOp body = verify::function(op, symbols, name);
  if (!body)
    return failure();
  if (!isComposite(body) && !isCluster(body))
    return op->emitOpError() << "runs " << name << ", which is neither a composite nor a cluster";
  bool fit = body.getNumArguments() == operands.size() && body.getNumResults() == 1 &&
             fits(result, body.getResultTypes()[0]);
  for (size_t i = 0; fit && i < operands.size(); ++i)
    fit = fits(operands[i], body.getArgumentTypes()[i]);
  if (fit)
    return success();
  return op->emitOpError() << "has other types than " << name << ", which is " << body.getFunctionType();
}

} // namespace

func::FuncOp calleeOf(CallOp call) { return functionOf(call, call.getCalleeAttr()); }

OriginAttr originOf(func::FuncOp composite) {
  return composite ? composite->getAttrOfType<OriginAttr>(kOriginAttr) : OriginAttr();
}

uint64_t flopsOfBody(Operation *op, FlatSymbolRefAttr body) {
  return sumOver(functionOf(op, body), &CostOpInterface::getFlops);
}

LogicalResult MatmulGeluOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyThen(*this, symbols, getBodyAttr(), getResult().getType(), getResult().getType());
}

LogicalResult MatmulGeluGradOp::verifySymbolUses(SymbolTableCollection &symbols) {
  Type type = getDx().getType();
  return verifyThen(*this, symbols, getBodyAttr(), {type, type}, type);
}

LogicalResult MatmulBiasGradOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (failed(verifyThen(*this, symbols, getBodyAttr(), getSummed().getType(), getSums().getType())))
    return failure();
  if (sumsRows(functionOf(*this, getBodyAttr())))
    return success();
  return emitOpError() << "runs " << getBodyAttr() << ", which is not the sum over rows";
}

LogicalResult CallOp::verify() {
  for (int64_t result : getParameterGrads().value_or(ArrayRef<int64_t>()))
    if (result < 0 || result >= getNumResults())
      return emitOpError() << "parameter_grads names result " << result << " of " << getNumResults();
  return success();
}

SmallVector<int64_t> CallOp::getDrawnStreams() {
  return SmallVector<int64_t>(getStreams().value_or(ArrayRef<int64_t>()));
}

void CallOp::setDrawnStreams(ArrayRef<int64_t> streams) {
  setStreamsAttr(streams.empty() ? DenseI64ArrayAttr() : Builder(getContext()).getDenseI64ArrayAttr(streams));
}

bool CallOp::hasDropout() {
  return llvm::any_of(calleeOf(*this).getOps<RandomOpInterface>(),
                      [](RandomOpInterface op) { return op.hasDropout(); });
}

LogicalResult CallOp::verifySymbolUses(SymbolTableCollection &symbols) {
  func::FuncOp callee = verify::function(*this, symbols, getCalleeAttr());
  if (!callee)
    return failure();
  if (!isComposite(callee))
    return emitOpError() << "calls @" << getCallee()
                         << ", which is no composite; mark it: func.func private @" << getCallee()
                         << "(...) attributes {" << kCompositeAttr << "}";
  if (failed(verifyTypes(*this, "operand", getOperandTypes(), callee.getArgumentTypes())))
    return failure();
  return verifyTypes(*this, "result", getResultTypes(), callee.getResultTypes());
}

ElementRole CallOp::getElementRole(unsigned index) {
  if (func::FuncOp callee = calleeOf(*this); callee && callee.getResultAttr(index, kStatisticAttr))
    return ElementRole::Statistic;
  return llvm::is_contained(getParameterGrads().value_or(ArrayRef<int64_t>()), int64_t(index))
             ? ElementRole::Rounded
             : ElementRole::Activation;
}

//===----------------------------------------------------------------------===//
// Costs: those of the ops that it is made of
//===----------------------------------------------------------------------===//

uint64_t CallOp::getFlops() { return sumOver(calleeOf(*this), &CostOpInterface::getFlops); }

bool isOfClusters(Operation *op) {
  if (auto call = dyn_cast<CallOp>(op)) {
    func::FuncOp callee = calleeOf(call);
    return callee && llvm::all_of(callee.getBody().front().without_terminator(),
                                  [](Operation &inner) { return isOfClusters(&inner); });
  }
  return op->hasTrait<CheapToRecompute>() || isa<ConcatOp, CopyOp, FillOp, ReduceOp, ReshapeOp, SliceOp>(op);
}

uint64_t CallOp::getModelFlops() { return sumOver(calleeOf(*this), &CostOpInterface::getModelFlops); }

// Its ops run as clusters where they can.
uint64_t CallOp::getBytes() {
  uint64_t bytes = bytesOfOperandsAndResults(*this);
  if (func::FuncOp callee = calleeOf(*this))
    for (auto op : callee.getOps<CostOpInterface>())
      bytes += isOfClusters(op) ? 0 : op.getBytes();
  return bytes;
}

// That of the op it was made of, by which it is known in reports.
llvm::StringRef CallOp::getKernelName() {
  OriginAttr origin = originOf(calleeOf(*this));
  if (!origin || origin.getKind() != OriginKind::body)
    return getCallee();
  return origin.getOp().getValue().split('.').second;
}

llvm::StringRef CallOp::getOpClass() {
  OriginAttr origin = originOf(calleeOf(*this));
  return origin ? opClassOf(OperationName(origin.getOp(), getContext())) : llvm::StringRef();
}

uint64_t CallOp::getWorkspaceBytes(::ft::DeviceClass device) {
  uint64_t most = 0;
  if (func::FuncOp callee = calleeOf(*this))
    for (auto op : callee.getOps<KernelOpInterface>())
      most = std::max(most, op.getWorkspaceBytes(device));
  return most;
}

bool CallOp::isCheapToRecompute() {
  func::FuncOp callee = calleeOf(*this);
  if (OriginAttr origin = originOf(callee))
    return OperationName(origin.getOp(), getContext()).hasTrait<CheapToRecompute>();
  return callee && llvm::all_of(callee.getOps<KernelOpInterface>(), [](KernelOpInterface op) {
           return isa<FillOp>(op) || op.isCheapToRecompute();
         });
}

} // namespace mlir::ft
