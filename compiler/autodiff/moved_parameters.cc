#include "compiler/autodiff/moved_parameters.h"

#include "llvm/ADT/SetVector.h"

namespace mlir::ft {

namespace {

bool isBackward(Operation *op) { return isInPhase(op, kPhaseBackward); }

// Ops of forward that make what is a parameter but for the places of its elements, in order.
llvm::SetVector<Operation *> movesOfParameters(Block &block) {
  llvm::SetVector<Operation *> moves;
  for (Operation &op : block) {
    if (isBackward(&op) || !isa<ReshapeOp, SliceOp, TransposeOp>(op))
      continue;
    Operation *source = op.getOperand(0).getDefiningOp();
    if (source && (isa<GetOp>(source) || moves.contains(source)))
      moves.insert(&op);
  }
  return moves;
}

Operation *firstReaderInBackward(Operation *move) {
  Operation *first = nullptr;
  for (Operation *user : move->getUsers())
    if (isBackward(user) && (!first || user->isBeforeInBlock(first)))
      first = user;
  return first;
}

} // namespace

void moveParametersAgain(Block &block) {
  llvm::SetVector<Operation *> moves = movesOfParameters(block);
  // From the last on: a move that is made again reads those before it in backward.
  for (Operation *move : llvm::reverse(moves)) {
    Operation *first = firstReaderInBackward(move);
    if (!first)
      continue;
    OpBuilder builder(first);
    Operation *again = builder.clone(*move);
    setPhase(again, kPhaseBackward);
    setLayer(again, getLayer(first));
    move->getResult(0).replaceUsesWithIf(again->getResult(0), [&](OpOperand &use) {
      return use.getOwner() != again && isBackward(use.getOwner());
    });
  }
}

} // namespace mlir::ft
