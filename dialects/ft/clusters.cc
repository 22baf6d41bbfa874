#include "dialects/ft/clusters.h"

#include "dialects/ft/symbols.h"
#include "dialects/ft/verify.h"

namespace mlir::ft {

func::FuncOp bodyOf(ClusterOp cluster) { return functionOf(cluster, cluster.getBodyAttr()); }

bool sumsRows(func::FuncOp body) {
  if (body.isExternal() || body.getNumArguments() != 1)
    return false;
  Block &block = body.getBody().front();
  auto sum = dyn_cast<ReduceOp>(block.front());
  if (!sum || sum->getNextNode() != block.getTerminator() || sum.getX() != block.getArgument(0) ||
      sum.getKind() != "sum")
    return false;
  int64_t rank = cast<RankedTensorType>(sum.getX().getType()).getRank();
  return rank > 1 && llvm::equal(sum.getDims(), llvm::seq<int64_t>(0, rank - 1));
}

LogicalResult verify::partialBytes(Operation *op, ArrayRef<int64_t> bytes) {
  if (bytes.size() == ::ft::kDeviceClasses.size() &&
      llvm::all_of(bytes, [](int64_t one) { return one >= 0; }))
    return success();
  return op->emitOpError() << "partial_bytes are not one number for each of " << ::ft::kDeviceClasses.size()
                           << " kinds of devices";
}

LogicalResult ClusterOp::verify() {
  if (failed(verify::partialBytes(*this, getPartialBytes())))
    return failure();
  if (getInPlace().size() != getNumResults())
    return emitOpError() << "has " << getInPlace().size() << " numbers in_place for " << getNumResults()
                         << " results";
  for (auto [result, operand] : llvm::zip_equal(getResults(), getInPlace())) {
    if (operand < 0)
      continue;
    if (operand >= static_cast<int64_t>(getNumOperands()) ||
        getOperand(operand).getType() != result.getType())
      return emitOpError() << "in_place names operand " << operand << ", which is none of the result's type";
  }
  return success();
}

LogicalResult ClusterOp::verifySymbolUses(SymbolTableCollection &symbols) {
  func::FuncOp body = verify::function(*this, symbols, getBodyAttr());
  if (!body)
    return failure();
  if (!isCluster(body))
    return emitOpError() << "runs " << getBodyAttr() << ", which has no attribute " << kClusterAttr;
  if (body.getArgumentTypes() != getOperandTypes() || body.getResultTypes() != getResultTypes())
    return emitOpError() << "has other types than " << getBodyAttr() << ", which is "
                         << body.getFunctionType();
  int64_t draws = 0;
  for (auto bits : body.getOps<RandomBitsOp>())
    draws = std::max<int64_t>(draws, bits.getStream() + 1);
  if (draws != static_cast<int64_t>(getStreams().value_or(ArrayRef<int64_t>()).size()))
    return emitOpError() << "has " << getStreams().value_or(ArrayRef<int64_t>()).size() << " streams; "
                         << getBodyAttr() << " draws from " << draws;
  return success();
}

uint64_t ClusterOp::getFlops() {
  uint64_t flops = 0;
  if (func::FuncOp body = bodyOf(*this))
    for (auto op : body.getOps<CostOpInterface>())
      flops += op.getFlops();
  return flops;
}

uint64_t ClusterOp::getWorkspaceBytes(::ft::DeviceClass device) {
  return getPartialBytes()[static_cast<size_t>(device)];
}

Value ClusterOp::getReusableOperand(unsigned index) {
  int64_t operand = getInPlace()[index];
  return operand < 0 ? Value() : getOperand(operand);
}

} // namespace mlir::ft
