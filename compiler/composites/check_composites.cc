#include "compiler/composites/check_composites.h"

#include "dialects/ft/composites.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/SetVector.h"

namespace ft::compiler {

using namespace mlir;
using mlir::ft::CallOp;

namespace {

bool isKernelType(Type type) {
  Type element = getElementTypeOrSelf(type);
  return mlir::ft::isKernelShape(type) && (element.isF32() || element.isInteger());
}

LogicalResult checkTypes(Operation *op, TypeRange types, StringRef what) {
  for (Type type : types)
    if (!isKernelType(type))
      return op->emitError() << what << " of a composite is " << type
                             << "; expected tensors of f32, integers or truth values, static and of at most "
                             << mlir::ft::kMaxRank
                             << " dimensions (--mixed-precision decides where 16 bits go in and out)";
  return success();
}

LogicalResult checkOp(Operation &op) {
  if (isa<mlir::ft::DropoutOp, mlir::ft::SampleBitsOp>(op))
    return op.emitOpError(
        "draws random numbers, which all calls of a composite would share; put it beside the call");
  bool computes =
      isa<mlir::ft::KernelOpInterface, mlir::ft::CompositeOpInterface>(op) && isMemoryEffectFree(&op);
  if (!computes)
    return op.emitOpError(
        "cannot stand in a composite; it is made of ops that compute, and takes parameters as operands");
  return checkTypes(&op, op.getResultTypes(), "a value");
}

LogicalResult checkComposite(func::FuncOp function) {
  if (!function.isPrivate() || !function.getBody().hasOneBlock())
    return function.emitError() << "composite @" << function.getSymName()
                                << " must be private and have a body of one block";
  if (failed(checkTypes(function, function.getArgumentTypes(), "an operand")) ||
      failed(checkTypes(function, function.getResultTypes(), "a result")))
    return failure();
  for (Operation &op : function.getBody().front().without_terminator())
    if (failed(checkOp(op)))
      return failure();
  return success();
}

/// Depth first along calls.
class Calls {
public:
  LogicalResult check(func::FuncOp function) {
    if (sizes.contains(function))
      return success();
    path.insert(function);
    uint64_t size = 0;
    for (Operation &op : function.getBody().front().without_terminator()) {
      auto call = dyn_cast<CallOp>(op);
      if (call && failed(checkCall(call)))
        return failure();
      size += call ? sizes.lookup(mlir::ft::calleeOf(call)) : 1;
      if (size > kMaxOps)
        return op.emitError() << "composite @" << function.getSymName() << " is more than " << kMaxOps
                              << " ops, with those of the composites that it calls";
    }
    path.pop_back();
    sizes[function] = size;
    return success();
  }

private:
  static constexpr uint64_t kMaxOps = 10000;
  static constexpr size_t kMaxDepth = 64;

  LogicalResult checkCall(CallOp call) {
    func::FuncOp callee = mlir::ft::calleeOf(call);
    if (path.contains(callee))
      return call.emitOpError() << "calls @" << callee.getSymName()
                                << ", which leads back to this call; a composite cannot call itself";
    if (path.size() == kMaxDepth)
      return call.emitOpError() << "is the last of " << kMaxDepth
                                << " calls within each other; that is too deep";
    return check(callee);
  }

  llvm::SetVector<Operation *> path;
  llvm::DenseMap<Operation *, uint64_t> sizes; // ops when all calls are expanded
};

} // namespace

LogicalResult checkComposites(ModuleOp module) {
  for (func::FuncOp function : mlir::ft::compositesOf(module))
    if (failed(checkComposite(function)))
      return failure();
  Calls calls;
  for (func::FuncOp function : mlir::ft::compositesOf(module))
    if (failed(calls.check(function)))
      return failure();
  return success();
}

} // namespace ft::compiler
