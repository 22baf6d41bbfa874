#include "compiler/autodiff/reverse_mode.h"

#include "compiler/autodiff/composite_gradients.h"
#include "dialects/ft/elementwise.h"

namespace mlir::ft {

void GradientTable::addParameterValue(GetOp get) {
  Value first = firstGets.try_emplace(get.getParameter(), get.getValue()).first->second;
  if (first != get.getValue())
    representatives[get.getValue()] = first;
}

Value GradientTable::representative(Value value) const {
  auto it = representatives.find(value);
  return it == representatives.end() ? value : it->second;
}

ReverseMode::ReverseMode(Block &block, ArrayRef<Value> variables, ValueRange outputs,
                         CompositeGradients &composites)
    : activities(block, variables, outputs), composites(composites),
      builder(OpBuilder::atBlockTerminator(&block)) {
  for (Operation &op : block.without_terminator()) {
    forwardOps.push_back(&op);
    if (auto get = dyn_cast<GetOp>(op))
      gradients.addParameterValue(get);
  }
}

void ReverseMode::seed(Value output, Value gradient) {
  if (!activities.isActive(output))
    return;
  if (Value earlier = gradients.lookup(output))
    gradient = AddOp::create(builder, output.getLoc(), output.getType(), ValueRange{earlier, gradient});
  gradients.set(output, gradient);
}

LogicalResult ReverseMode::run(Observer &observer) {
  for (Operation *op : llvm::reverse(forwardOps)) {
    if (!activities.isActive(op))
      continue;
    observer.enter(op);
    if (failed(differentiate(op)))
      return failure();
    observer.leave(op);
  }
  return success();
}

LogicalResult ReverseMode::differentiate(Operation *op) {
  SmallVector<Value> resultGrads =
      llvm::map_to_vector(op->getResults(), [&](Value r) { return gradients.lookup(r); });
  SmallVector<bool> needed, accumulated(op->getNumOperands(), false);
  for (Value operand : op->getOperands())
    needed.push_back(activities.isActive(operand));
  SmallVector<Value> contributions;
  if (auto call = dyn_cast<CallOp>(op)) {
    contributions = composites.buildGradient(builder, call, resultGrads, needed);
  } else if (auto rule = dyn_cast<DifferentiableOpInterface>(op)) {
    contributions = rule.buildGradient(builder, resultGrads, needed, accumulatorsFor(op, needed, resultGrads),
                                       accumulated);
  } else {
    return op->emitError()
           << "'" << op->getName()
           << "' has no derivative but lies between a trained parameter and the loss: freeze the "
              "parameter or use an op with a derivative";
  }
  if (contributions.size() != op->getNumOperands())
    return failure(); // the rule has said why
  for (unsigned i = 0; i < op->getNumOperands(); ++i)
    if (needed[i] && failed(accumulate(op, i, contributions[i], accumulated[i])))
      return failure();
  return success();
}

// The sums that the rule may continue, each in the buffer of the sum so far. Hence none where the op's
// upstream gradient is itself that sum (x + f(x): it is still to be read), and a value that is an operand
// twice offers its sum to the first only, or the two continuations would each miss the other's part. Nor a
// sum that is an argument of the block: it is the caller's.
SmallVector<Value> ReverseMode::accumulatorsFor(Operation *op, ArrayRef<bool> needed,
                                                ArrayRef<Value> resultGrads) const {
  SmallVector<Value> sums;
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    Value sum = needed[i] ? gradients.lookup(operand) : Value();
    for (Value earlier : op->getOperands().take_front(i))
      if (gradients.same(earlier, operand))
        sum = Value();
    bool ours = sum && !isa<BlockArgument>(sum) && !llvm::is_contained(resultGrads, sum);
    sums.push_back(ours ? sum : Value());
  }
  return sums;
}

LogicalResult ReverseMode::accumulate(Operation *op, unsigned index, Value contribution, bool isWholeSum) {
  Value operand = op->getOperand(index);
  if (!contribution || contribution.getType() != operand.getType())
    return op->emitError() << "the derivative of '" << op->getName() << "' gives no gradient of type "
                           << operand.getType() << " for operand " << index
                           << ", which depends on a trained parameter";
  Value earlier = gradients.lookup(operand);
  if (earlier && !isWholeSum)
    contribution = AddOp::create(builder, op->getLoc(), operand.getType(), ValueRange{earlier, contribution});
  gradients.set(operand, contribution);
  return success();
}

} // namespace mlir::ft
