#include "compiler/schedule/placement.h"

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

Placement::Placement(func::FuncOp function) {
  Block &block = function.getBody().front();
  for (Operation &op : block)
    for (Value operand : op.getOperands())
      lastUse[operand] = &op;
  for (Operation &op : llvm::reverse(block))
    visit(&op);
}

void Placement::visit(Operation *op) {
  if (isa<func::ReturnOp, PackOp>(op)) {
    for (auto [index, operand] : llvm::enumerate(op->getOperands()))
      if (canOverwrite(operand, op))
        assign(operand, {op, static_cast<unsigned>(index)});
    return;
  }
  for (OpResult result : op->getResults()) {
    auto home = homes.find(result);
    if (home == homes.end())
      continue;
    Value operand = tiedOperand(op, result.getResultNumber());
    if (operand && canOverwrite(operand, op))
      assign(operand, home->second);
  }
}

/// Only tensors that an instruction writes can be put somewhere.
void Placement::assign(Value value, Home home) {
  Operation *op = value.getDefiningOp();
  if (op && isa<RankedTensorType>(value.getType()) && isa<KernelOpInterface, AllReduceOp>(op))
    homes.insert({value, home});
}

std::optional<Home> Placement::homeOf(Value value) const {
  auto home = homes.find(value);
  return home == homes.end() ? std::nullopt : std::optional<Home>(home->second);
}

bool Placement::diesAt(Value value, Operation *op) const { return lastUse.lookup(value) == op; }

bool Placement::canOverwrite(Value operand, Operation *op) const {
  return diesAt(operand, op) && llvm::count(op->getOperands(), operand) == 1;
}

} // namespace ft::compiler
