// Leaves time for sums over shards before the sums over replicas that need them.
//
// Enters: programs in which everything that runs beside `compute` is followed by its wait. Leaves: the same
// instructions, sums over replicas with their waits further down.
#include "compiler/schedule/passes.h"

#include "compiler/schedule/fetch_groups.h"

namespace ft::compiler {

#define GEN_PASS_DEF_DELAYSECONDSUMSPASS
#include "compiler/schedule/passes.h.inc"

namespace {

using namespace mlir;
using namespace mlir::ftx;

bool sumsOverShards(Operation *op) {
  auto start = dyn_cast<StartOp>(op);
  return start && start.getTransfer() == Transfer::reduce_scatter;
}

/// The next sum over shards, when nothing up to there needs what `second` makes; null otherwise.
Operation *placeOf(StartOp second) {
  Operation *op = waitOf(second)->getNextNode();
  while (op && !sumsOverShards(op) && !conflictInFlight(op, second))
    op = op->getNextNode();
  return op && sumsOverShards(op) && !conflictInFlight(op, second) ? op : nullptr;
}

struct DelaySecondSumsPass : impl::DelaySecondSumsPassBase<DelaySecondSumsPass> {
  void runOnOperation() override {
    for (ProgramOp program : getOperation().getOps<ProgramOp>())
      for (StartOp start : llvm::make_early_inc_range(program.getOps<StartOp>()))
        if (Operation *place = start.getStream() == Stream::replica ? placeOf(start) : nullptr) {
          WaitOp wait = waitOf(start);
          start->moveBefore(place);
          wait->moveBefore(place);
        }
  }
};

} // namespace
} // namespace ft::compiler
