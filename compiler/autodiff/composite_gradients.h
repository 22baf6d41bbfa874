// Derivatives of composites: composites themselves, one for all calls that want the same of it.
#pragma once

#include "dialects/ft/composites.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::ft {

// The derivative of @f is @f.grad: it takes what it reads of the operands of @f and of the gradients of its
// results, and gives those of its operands. What it needs of the values between, it computes again. A
// derivative with respect to some operands only, or given the gradients of some results only, says so:
// @f.grad_1_from_0.
class CompositeGradients {
public:
  explicit CompositeGradients(ModuleOp module) : symbols(module) {}

  // As DifferentiableOpInterface::buildGradient. Empty when the body of a composite cannot be differentiated,
  // which has been said then.
  SmallVector<Value> buildGradient(OpBuilder &builder, CallOp call, ArrayRef<Value> resultGrads,
                                   ArrayRef<bool> needed);

private:
  // Numbers of the operands whose gradients are wanted, and of the results whose gradients are given.
  struct Wanted {
    SmallVector<unsigned> operands, results;
  };

  // Of the operands and gradients of results of a call it takes those with these numbers.
  struct Derivative {
    func::FuncOp function;
    SmallVector<unsigned> reads;
  };

  const Derivative *derivativeOf(func::FuncOp composite, const Wanted &wanted);
  LogicalResult differentiate(func::FuncOp function, const Wanted &wanted);

  SymbolTable symbols;
  llvm::StringMap<Derivative> made; // by what they are called; another function may have had the name
};

} // namespace mlir::ft
