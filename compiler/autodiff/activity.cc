#include "compiler/autodiff/activity.h"

#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TypeUtilities.h"

namespace mlir::ft {
namespace {

bool isFloat(Value value) { return isa<FloatType>(getElementTypeOrSelf(value.getType())); }

// Floats that depend on a trained parameter.
llvm::DenseSet<Value> dependents(ModuleOp module, Block &block) {
  SymbolTable symbols(module);
  llvm::DenseSet<Value> values;
  for (Operation &op : block) {
    bool depends = llvm::any_of(op.getOperands(), [&](Value operand) { return values.contains(operand); });
    if (auto get = dyn_cast<GetOp>(op)) {
      auto parameter = symbols.lookup<ParameterOp>(get.getParameter());
      depends = parameter && !parameter.getFrozen();
    }
    if (!depends)
      continue;
    for (Value result : op.getResults())
      if (isFloat(result))
        values.insert(result);
  }
  return values;
}

} // namespace

Activity::Activity(ModuleOp module, Block &block, Value loss) {
  llvm::DenseSet<Value> dependent = dependents(module, block);
  if (dependent.contains(loss))
    active.insert(loss);
  for (Operation &op : llvm::reverse(block)) {
    if (llvm::none_of(op.getResults(), [&](Value result) { return active.contains(result); }))
      continue;
    for (Value operand : op.getOperands()) {
      if (!dependent.contains(operand))
        continue;
      active.insert(operand);
      if (auto get = operand.getDefiningOp<GetOp>())
        finalContributors[get.getParameter()] = &op;
    }
  }
}

bool Activity::isActive(Operation *op) const {
  auto active = [&](Value value) { return isActive(value); };
  return llvm::any_of(op->getResults(), active) && llvm::any_of(op->getOperands(), active);
}

} // namespace mlir::ft
