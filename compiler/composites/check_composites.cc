#include "compiler/composites/check_composites.h"

#include "dialects/ft/composites.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/SetVector.h"

#include <algorithm>

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
  bool computes =
      isa<mlir::ft::KernelOpInterface, mlir::ft::CompositeOpInterface, mlir::ft::ShorthandOpInterface>(op) &&
      isMemoryEffectFree(&op);
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
  LogicalResult check(func::FuncOp function, uint64_t maxOps = kMaxOps) {
    if (known.contains(function))
      return success();
    path.insert(function);
    Extent extent{0, 1};
    for (Operation &op : function.getBody().front().without_terminator()) {
      auto call = dyn_cast<CallOp>(op);
      if (call && failed(checkCall(call)))
        return failure();
      Extent inner = call ? known.lookup(mlir::ft::calleeOf(call)) : Extent{1, 0};
      extent = {extent.ops + inner.ops + (call ? 1 : 0), std::max(extent.depth, inner.depth + 1)};
      if (call && (extent.ops > maxOps || extent.depth > kMaxDepth))
        return call.emitOpError() << "makes @" << function.getSymName() << " more than " << maxOps
                                  << " ops, or calls within each other more than " << kMaxDepth
                                  << " deep, when all calls are expanded";
    }
    path.pop_back();
    known[function] = extent;
    return success();
  }

  static constexpr uint64_t kMaxOps = 10000, kMaxOpsOfProgram = 1000000;

private:
  static constexpr uint64_t kMaxDepth = 64;

  /// When all calls are expanded; they count, too.
  struct Extent {
    uint64_t ops = 0, depth = 0;
  };

  LogicalResult checkCall(CallOp call) {
    if (call.getStreams())
      return call.emitOpError("has streams, which the compiler numbers; leave them out");
    func::FuncOp callee = mlir::ft::calleeOf(call);
    if (path.contains(callee))
      return call.emitOpError() << "calls @" << callee.getSymName()
                                << ", which leads back to this call; a composite cannot call itself";
    if (path.size() > kMaxDepth)
      return call.emitOpError() << "is one of more than " << kMaxDepth << " calls within each other";
    return check(callee);
  }

  llvm::SetVector<Operation *> path;
  llvm::DenseMap<Operation *, Extent> known;
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
  for (func::FuncOp function : mlir::ft::programsOf(module))
    if (failed(calls.check(function, Calls::kMaxOpsOfProgram)))
      return failure();
  return success();
}

} // namespace ft::compiler
