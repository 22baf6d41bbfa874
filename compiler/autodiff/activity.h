// Which values of a graph take part in differentiation.
#pragma once

#include "dialects/ft/dialect.h"
#include "mlir/IR/Block.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringRef.h"

namespace mlir::ft {

// What a training step differentiates with respect to: the values of trained parameters in `block`, which are
// looked up in `module`.
llvm::SmallVector<Value> trainedValues(ModuleOp module, Block &block);

// A value is active when it is a float, depends on a variable, and an output depends on it, all through
// floats and ops that are not flat: integers carry no derivative. Exactly the active values get gradients.
class Activity {
public:
  // `block` holds the graph; `variables` and `outputs` are values of it.
  Activity(Block &block, ArrayRef<Value> variables, ValueRange outputs);

  bool isActive(Value value) const { return active.contains(value); }
  // Whether the rule of `op` has to be applied: one of its results and one of its operands are active.
  bool isActive(Operation *op) const;

  // The last op, walking from the end, that contributes to the gradient of this parameter; null when none
  // does.
  Operation *finalContributor(StringRef parameter) const { return finalContributors.lookup(parameter); }

private:
  llvm::DenseSet<Value> active;
  llvm::DenseMap<StringRef, Operation *> finalContributors;
};

} // namespace mlir::ft
