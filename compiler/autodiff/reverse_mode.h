// Reverse-mode differentiation of one block.
#pragma once

#include "compiler/autodiff/activity.h"
#include "mlir/IR/Builders.h"

namespace mlir::ft {

class CompositeGradients;

// Gradients found so far. All ft.get of one parameter share an entry.
class GradientTable {
public:
  Value lookup(Value value) const { return gradients.lookup(representative(value)); }
  void set(Value value, Value gradient) { gradients[representative(value)] = gradient; }
  bool same(Value a, Value b) const { return representative(a) == representative(b); }

  // Must be told of every ft.get before anything else.
  void addParameterValue(GetOp get);

private:
  Value representative(Value value) const;

  llvm::DenseMap<Value, Value> gradients;
  llvm::DenseMap<StringRef, Value> firstGets;
  llvm::DenseMap<Value, Value> representatives;
};

// Appends gradient ops to a block, by the rules of its ops from the last to the first.
class ReverseMode {
public:
  // Told of the ops that are differentiated.
  struct Observer {
    virtual ~Observer() = default;
    virtual void enter(Operation *) {}
    virtual void leave(Operation *) {} // its contributions have been added
  };

  // Differentiates `outputs` with respect to `variables`, both values of `block`; ops of gradients are built
  // before its terminator. `composites` has the derivatives of what is called.
  ReverseMode(Block &block, ArrayRef<Value> variables, ValueRange outputs, CompositeGradients &composites);

  const Activity &activity() const { return activities; }
  OpBuilder &ops() { return builder; }

  // `gradient`, of the type of `output`, is that of an output. An output that no variable reaches has none.
  void seed(Value output, Value gradient);
  LogicalResult run(Observer &observer);

  // Null where no output depends on the value.
  Value gradientOf(Value value) const { return gradients.lookup(value); }

private:
  LogicalResult differentiate(Operation *op);
  SmallVector<Value> accumulatorsFor(Operation *op, ArrayRef<bool> needed, ArrayRef<Value> resultGrads) const;
  LogicalResult accumulate(Operation *op, unsigned index, Value contribution, bool isWholeSum);

  Activity activities;
  CompositeGradients &composites;
  OpBuilder builder;
  SmallVector<Operation *> forwardOps;
  GradientTable gradients;
};

} // namespace mlir::ft
