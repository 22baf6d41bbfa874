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
      lastUse[named(operand)] = &op;
  for (Operation &op : llvm::reverse(block))
    visit(&op);
}

/// Whether the unit of a parameter is released before the last use of `reshape`, by this or by a further
/// name.
static bool isReleasedBefore(mlir::ft::ViewOp parameter, mlir::ft::ReshapeOp reshape) {
  return llvm::any_of(reshape->getUsers(), [&](Operation *user) {
    auto further = dyn_cast<mlir::ft::ReshapeOp>(user);
    return (further && isReleasedBefore(parameter, further)) ||
           llvm::any_of(parameter.getFlat().getUsers(), [&](Operation *release) {
             return isa<mlir::ft::ReleaseOp>(release) && parameter->isBeforeInBlock(release) &&
                    release->isBeforeInBlock(user);
           });
  });
}

bool ValueUses::isName(Operation *op) const {
  auto reshape = dyn_cast<mlir::ft::ReshapeOp>(op);
  if (!reshape)
    return false;
  Operation *root = named(reshape.getX()).getDefiningOp();
  if (auto parameter = dyn_cast_or_null<mlir::ft::ViewOp>(root))
    return !isReleasedBefore(parameter, reshape);
  return isa_and_nonnull<KernelOpInterface>(root);
}

Value ValueUses::named(Value value) const {
  Operation *op = value.getDefiningOp();
  return op && isName(op) ? named(op->getOperand(0)) : value;
}

bool ValueUses::hasOneName(Value operand, Operation *op) const {
  return llvm::none_of(op->getOperands(),
                       [&](Value other) { return other != operand && named(other) == named(operand); });
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
  Operation *op = named(value).getDefiningOp();
  if (op && isa<RankedTensorType>(value.getType()) && isa<KernelOpInterface, AllReduceOp>(op))
    destinations.insert({named(value), destination});
}

std::optional<Destination> ValueUses::destinationOf(Value value) const {
  auto destination = destinations.find(named(value));
  return destination == destinations.end() ? std::nullopt : std::optional<Destination>(destination->second);
}

bool ValueUses::diesAt(Value value, Operation *op) const { return lastUse.lookup(named(value)) == op; }

bool ValueUses::canOverwrite(Value operand, Operation *op) const {
  return diesAt(operand, op) && llvm::count(op->getOperands(), operand) == 1 && hasOneName(operand, op);
}

} // namespace ft::compiler
