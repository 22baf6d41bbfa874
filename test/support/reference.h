// The forward ops of the dialect in float64, by the formulas of their descriptions in ops.td and nothing
// else: no code is shared with kernels. Slow on purpose; for comparing with kernels and for finite
// differences.
#pragma once

#include <map>

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "test/support/array.h"

namespace mlir::ft::test {

// Evaluates a forward function, at a base point first and then near it.
//
// What is not differentiable is frozen at the base point, so that finite differences around it give exactly
// what the gradients are defined to be: sampled indices stay, and binary_mapper is R = (Y + G - stopgrad(G))
// table with Y the one-hot of the index and stopgrad(G) the probabilities of the codes at the base point.
class Reference {
 public:
  explicit Reference(func::FuncOp forward) : forward(forward) {}

  // The first call sets the base point. Returns the loss; `parameters` are looked up by name.
  double loss(const NamedArrays& parameters, const StepInputs& inputs);

  // All values of the last call.
  const Array& value(Value value) const { return values.at(value.getAsOpaquePointer()); }

  // The names of the ops that can be evaluated, without the dialect's name.
  static std::vector<std::string> supportedOps();

 private:
  void evaluate(Operation& op, const NamedArrays& parameters, const StepInputs& inputs);

  func::FuncOp forward;
  std::map<const void*, Array> values;
  std::map<Operation*, Array> frozen;
};

}  // namespace mlir::ft::test
