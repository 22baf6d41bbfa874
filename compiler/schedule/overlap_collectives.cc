// Lets communication run beside computation.
//
// Enters: programs in which every start is followed by its wait. Leaves: the same instructions, starts of
// gathers moved up, waits of reductions moved down, never past an instruction that touches the same buffers.
#include "compiler/schedule/passes.h"

#include "dialects/ftx/views.h"

namespace ft::compiler {

#define GEN_PASS_DEF_OVERLAPCOLLECTIVESPASS
#include "compiler/schedule/passes.h.inc"

namespace {

using namespace mlir;
using namespace mlir::ftx;

WaitOp waitOf(StartOp start) {
  for (Operation *user : start.getToken().getUsers())
    if (auto wait = dyn_cast<WaitOp>(user))
      return wait;
  return {};
}

/// Moves `start` up to right behind `limit`, or to the last instruction before it that touches its buffers.
void hoist(StartOp start, Operation *limit) {
  Operation *place = start;
  for (Operation *op = start->getPrevNode(); op && op != limit && !conflict(op, start);
       op = op->getPrevNode())
    if (isInstruction(op))
      place = op;
  if (place == start)
    return;
  start->moveBefore(place);
  for (Value buffer : start.getOuts())
    if (auto definition = buffer.getDefiningOp<BufferOp>(); !definition.getPersistent())
      definition->moveBefore(start);
}

/// The start of each gather moves up to the wait of the one before.
void prefetchGathers(ProgramOp program) {
  Operation *waitBefore = nullptr;
  for (StartOp start : llvm::make_early_inc_range(program.getOps<StartOp>())) {
    if (start.getCollective() != Collective::all_gather)
      continue;
    WaitOp wait = waitOf(start);
    if (waitBefore)
      hoist(start, waitBefore);
    waitBefore = wait;
  }
}

/// The wait of each reduction moves down to the first instruction that touches its buffers; that of a unit's
/// gradient, which holds memory, no further than to the next start on its stream.
void postponeWaits(ProgramOp program) {
  for (StartOp start : program.getOps<StartOp>()) {
    WaitOp wait = waitOf(start);
    if (start.getCollective() == Collective::all_gather || !wait)
      continue;
    Operation *op = wait->getNextNode();
    for (; op && !isa<OutputOp>(op) && !conflict(op, start); op = op->getNextNode())
      if (auto next = dyn_cast<StartOp>(op); start.getUnit() && next && next.getStream() == start.getStream())
        break;
    if (op)
      wait->moveBefore(op);
    else
      wait->moveBefore(wait->getBlock(), wait->getBlock()->end());
  }
}

struct OverlapCollectivesPass : impl::OverlapCollectivesPassBase<OverlapCollectivesPass> {
  using OverlapCollectivesPassBase::OverlapCollectivesPassBase;

  void runOnOperation() override {
    if (prefetch != "one" && prefetch != "none") {
      getOperation().emitError() << "prefetch must be 'one' or 'none', not '" << prefetch << "'";
      return signalPassFailure();
    }
    if (prefetch == "none")
      return;
    for (ProgramOp program : getOperation().getOps<ProgramOp>()) {
      prefetchGathers(program);
      postponeWaits(program);
    }
  }
};

} // namespace
} // namespace ft::compiler
