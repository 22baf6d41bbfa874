#include "compiler/autodiff/activity.h"

#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TypeUtilities.h"

namespace mlir::ft {
namespace {

bool isFloat(Value value) { return isa<FloatType>(getElementTypeOrSelf(value.getType())); }

// Floats that depend on a variable.
llvm::DenseSet<Value> dependents(Block &block, ArrayRef<Value> variables) {
  llvm::DenseSet<Value> values(variables.begin(), variables.end());
  for (Operation &op : block) {
    auto rule = dyn_cast<DifferentiableOpInterface>(op);
    bool flat = rule && rule.isFlat();
    if (flat || llvm::none_of(op.getOperands(), [&](Value operand) { return values.contains(operand); }))
      continue;
    for (Value result : op.getResults())
      if (isFloat(result))
        values.insert(result);
  }
  return values;
}

} // namespace

llvm::SmallVector<Value> trainedValues(ModuleOp module, Block &block) {
  SymbolTable symbols(module);
  llvm::SmallVector<Value> values;
  for (GetOp get : block.getOps<GetOp>()) {
    auto parameter = symbols.lookup<ParameterOp>(get.getParameter());
    if (parameter && !parameter.getFrozen())
      values.push_back(get.getValue());
  }
  return values;
}

Activity::Activity(Block &block, ArrayRef<Value> variables, ValueRange outputs) {
  llvm::DenseSet<Value> dependent = dependents(block, variables);
  for (Value output : outputs)
    if (dependent.contains(output))
      active.insert(output);
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
