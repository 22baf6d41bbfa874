#include "compiler/lower/value_uses.h"

namespace ft::compiler {

using namespace mlir;
using namespace mlir::ft;

Value tiedOperand(Operation *op, unsigned index) {
  if (auto reduce = dyn_cast<AllReduceOp>(op))
    return reduce.getX(); // in place
  if (auto kernel = dyn_cast<KernelOpInterface>(op))
    return kernel.getTiedOperand(index);
  return {};
}

namespace {

/// A parameter as it lies in the unit, gathered or at rest.
bool isParameter(Operation *op) {
  auto view = dyn_cast_or_null<ViewOp>(op);
  return view && isa_and_present<GatherOp, FetchOp, ShardOp>(view.getFlat().getDefiningOp());
}

/// What ends the time in which a parameter can be read where it is.
bool ends(Operation *op, ViewOp parameter) {
  if (auto release = dyn_cast<ReleaseOp>(op))
    return release.getFlat() == parameter.getFlat();
  return isa<UpdateOp, RefreshOp, StoreStateOp, InitOp>(op);
}

} // namespace

ValueUses::ValueUses(func::FuncOp function) {
  Block &block = function.getBody().front();
  findRoots(block);
  for (Operation &op : block)
    for (Value operand : op.getOperands())
      lastUse[rootOf(operand)] = &op;
  for (Operation &op : llvm::reverse(block))
    visit(&op);
}

/// Backwards, so that the last use of a reshape is known, by further ones of it, too.
void ValueUses::findRoots(Block &block) {
  llvm::DenseMap<Operation *, unsigned> position;
  SmallVector<Operation *> ending;
  for (Operation &op : block) {
    position[&op] = position.size();
    if (isa<ReleaseOp, UpdateOp, RefreshOp, StoreStateOp, InitOp>(op))
      ending.push_back(&op);
  }
  llvm::DenseMap<Operation *, unsigned> lastOf; // of reshapes
  for (Operation &op : llvm::reverse(block))
    if (isa<ReshapeOp>(op))
      for (Operation *user : op.getUsers())
        lastOf[&op] = std::max({lastOf.lookup(&op), position[user], lastOf.lookup(user)});
  for (auto reshape : block.getOps<ReshapeOp>()) {
    Value root = rootOf(reshape.getX());
    Operation *maker = root.getDefiningOp();
    bool outlives = isParameter(maker) && llvm::none_of(ending, [&](Operation *op) {
                      return ends(op, cast<ViewOp>(maker)) && position[maker] < position[op] &&
                             position[op] < lastOf.lookup(reshape);
                    });
    if (isa_and_present<KernelOpInterface>(maker) || outlives)
      roots[reshape.getResult()] = root;
  }
}

Value ValueUses::rootOf(Value value) const {
  Value root = roots.lookup(value);
  return root ? root : value;
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
  Operation *op = rootOf(value).getDefiningOp();
  if (op && isa<RankedTensorType>(value.getType()) && isa<KernelOpInterface, AllReduceOp>(op))
    destinations.insert({rootOf(value), destination});
}

std::optional<Destination> ValueUses::destinationOf(Value value) const {
  auto destination = destinations.find(rootOf(value));
  return destination == destinations.end() ? std::nullopt : std::optional<Destination>(destination->second);
}

bool ValueUses::diesAt(Value value, Operation *op) const {
  return lastUse.lookup(rootOf(value)) == op && llvm::none_of(op->getOperands(), [&](Value other) {
           return other != value && rootOf(other) == rootOf(value);
         });
}

bool ValueUses::canOverwrite(Value operand, Operation *op) const {
  return diesAt(operand, op) && llvm::count(op->getOperands(), operand) == 1;
}

} // namespace ft::compiler
