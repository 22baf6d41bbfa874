#include "compiler/precision/gradient_ops.h"

#include "compiler/precision/element_types.h"

namespace ft::compiler {

using namespace mlir;
using mlir::ft::ElementRole;
using mlir::ft::elementRole;
using mlir::ft::KernelOpInterface;

namespace {

bool mayBeGradient(OpResult result) {
  ElementRole role = elementRole(result.getOwner(), result.getResultNumber());
  return isRetyped(result.getType()) && (role == ElementRole::Rounded || role == ElementRole::Sum);
}

auto gradientResults(Operation *op) { return llvm::make_filter_range(op->getResults(), mayBeGradient); }

// The operand that a result of `op` continues, or null: the kernel finds it in the result's buffer.
Value tiedOperand(OpResult result) {
  auto kernel = dyn_cast<KernelOpInterface>(result.getOwner());
  return kernel ? kernel.getTiedOperand(result.getResultNumber()) : Value();
}

bool isSum(Operation *op) {
  return llvm::any_of(gradientResults(op), [](OpResult result) {
    return elementRole(result.getOwner(), result.getResultNumber()) == ElementRole::Sum;
  });
}

} // namespace

GradientOps::GradientOps(Block &block) {
  for (Operation &op : block)
    if (!gradientResults(&op).empty())
      ops.insert(&op);
  // The largest set that is closed: an op that leaves takes its neighbours in a sum along.
  SmallVector<Operation *> leaving;
  do {
    leaving.clear();
    for (Operation *op : ops)
      if (!readsGradients(op) || !isReadAsGradient(op))
        leaving.push_back(op);
    for (Operation *op : leaving)
      ops.erase(op);
  } while (!leaving.empty());
}

bool GradientOps::contains(OpResult result) const {
  return ops.contains(result.getOwner()) && mayBeGradient(result);
}

// What is continued or summed is a gradient itself.
bool GradientOps::readsGradients(Operation *op) const {
  auto isGradient = [&](Value value) {
    auto result = dyn_cast<OpResult>(value);
    return result && contains(result);
  };
  if (isSum(op))
    return llvm::all_of(op->getOperands(),
                        [&](Value operand) { return !isRetyped(operand.getType()) || isGradient(operand); });
  return llvm::all_of(gradientResults(op), [&](OpResult result) {
    Value sum = tiedOperand(result);
    return !sum || isGradient(sum);
  });
}

bool GradientOps::isReadAsGradient(Operation *op) const {
  return llvm::all_of(gradientResults(op), [&](OpResult result) {
    return llvm::all_of(result.getUses(), [&](OpOperand &use) { return takesGradient(use); });
  });
}

bool GradientOps::takesGradient(OpOperand &use) const {
  Operation *op = use.getOwner();
  if (auto pack = dyn_cast<mlir::ft::PackOp>(op))
    return pack.isOfGradients();
  if (!ops.contains(op))
    return false;
  if (isSum(op))
    return true;
  bool once = llvm::count(op->getOperands(), use.get()) == 1;
  return once &&
         llvm::any_of(gradientResults(op), [&](OpResult result) { return tiedOperand(result) == use.get(); });
}

} // namespace ft::compiler
