#include "dialects/ft/composites.h"

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

// The sum of a cost over the callee's ops.
uint64_t sumOverBody(CallOp call, uint64_t (CostOpInterface::*cost)()) {
  uint64_t sum = 0;
  if (func::FuncOp callee = calleeOf(call))
    for (auto op : callee.getOps<CostOpInterface>())
      sum += (op.*cost)();
  return sum;
}

} // namespace

func::FuncOp calleeOf(CallOp call) {
  return SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
}

LogicalResult CallOp::verify() {
  for (int64_t result : getParameterGrads().value_or(ArrayRef<int64_t>()))
    if (result < 0 || result >= getNumResults())
      return emitOpError() << "parameter_grads names result " << result << " of " << getNumResults();
  return success();
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
  return llvm::is_contained(getParameterGrads().value_or(ArrayRef<int64_t>()), int64_t(index))
             ? ElementRole::Rounded
             : ElementRole::Activation;
}

//===----------------------------------------------------------------------===//
// Costs: those of the ops that it is made of
//===----------------------------------------------------------------------===//

uint64_t CallOp::getFlops() { return sumOverBody(*this, &CostOpInterface::getFlops); }

uint64_t CallOp::getModelFlops() { return sumOverBody(*this, &CostOpInterface::getModelFlops); }

uint64_t CallOp::getBytes() { return sumOverBody(*this, &CostOpInterface::getBytes); }

llvm::StringRef CallOp::getKernelName() { return getCallee(); }

uint64_t CallOp::getWorkspaceBytes(::ft::DeviceClass device) {
  uint64_t most = 0;
  if (func::FuncOp callee = calleeOf(*this))
    for (auto op : callee.getOps<KernelOpInterface>())
      most = std::max(most, op.getWorkspaceBytes(device));
  return most;
}

bool CallOp::isCheapToRecompute() {
  func::FuncOp callee = calleeOf(*this);
  return callee && llvm::all_of(callee.getOps<KernelOpInterface>(),
                                [](KernelOpInterface op) { return op.isCheapToRecompute(); });
}

} // namespace mlir::ft
