#include "compiler/lower/value_uses.h"

namespace ft::compiler {

using namespace mlir;
using mlir::ft::AllReduceOp;
using mlir::ft::KernelOpInterface;
using mlir::ft::PackOp;

Value tiedOperand(Operation *op, unsigned index) {
  if (auto reduce = dyn_cast<AllReduceOp>(op))
    return reduce.getX(); // in place
  if (auto kernel = dyn_cast<KernelOpInterface>(op))
    return kernel.getTiedOperand(index);
  return {};
}

ValueUses::ValueUses(func::FuncOp function) {
  Block &block = function.getBody().front();
  for (Operation &op : block)
    for (Value operand : op.getOperands())
      lastUse[operand] = &op;
  for (Operation &op : llvm::reverse(block))
    visit(&op);
}

void ValueUses::visit(Operation *op) {
  if (isa<func::ReturnOp, PackOp>(op)) {
    for (auto [index, operand] : llvm::enumerate(op->getOperands()))
      if (canOverwrite(operand, op))
        assign(operand, {op, static_cast<unsigned>(index)});
    return;
  }
  for (OpResult result : op->getResults()) {
    auto destination = destinations.find(result);
    if (destination == destinations.end())
      continue;
    Value operand = tiedOperand(op, result.getResultNumber());
    if (operand && canOverwrite(operand, op))
      assign(operand, destination->second);
  }
}

/// Only tensors that an instruction writes can be put somewhere.
void ValueUses::assign(Value value, Destination destination) {
  Operation *op = value.getDefiningOp();
  if (op && isa<RankedTensorType>(value.getType()) && isa<KernelOpInterface, AllReduceOp>(op))
    destinations.insert({value, destination});
}

std::optional<Destination> ValueUses::destinationOf(Value value) const {
  auto destination = destinations.find(value);
  return destination == destinations.end() ? std::nullopt : std::optional<Destination>(destination->second);
}

bool ValueUses::diesAt(Value value, Operation *op) const { return lastUse.lookup(value) == op; }

bool ValueUses::canOverwrite(Value operand, Operation *op) const {
  return diesAt(operand, op) && llvm::count(op->getOperands(), operand) == 1;
}

} // namespace ft::compiler
