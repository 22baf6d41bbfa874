// Lets transfers run beside computation.
//
// Enters: programs in which every start is followed by its wait. Leaves: the same instructions, fetches moved
// up, waits of other transfers moved down, never past an instruction that touches the same buffers.
#include "compiler/schedule/passes.h"

#include "compiler/schedule/fetch_groups.h"

namespace ft::compiler {

#define GEN_PASS_DEF_OVERLAPCOLLECTIVESPASS
#include "compiler/schedule/passes.h.inc"

namespace {

using namespace mlir;
using namespace mlir::ftx;

struct Depths {
  int64_t forward = 0;
  int64_t backward = 0;
  bool afterBackward = false; // backward_post
};

/// No further than to right behind one of `limits`. (No question about the order of ops in between: each
/// costs a walk over the whole program after a move.)
void moveUp(ArrayRef<Operation *> ops, ArrayRef<Operation *> limits) {
  Operation *first = ops.front();
  Operation *place = highestPlace(ops, first, limits);
  if (place == first)
    return;
  for (Operation *op : ops)
    op->moveBefore(place);
}

Operation *releaseOf(Value buffer) {
  for (Operation *user : buffer.getUsers())
    if (isa<ReleaseOp>(user))
      return user;
  return nullptr;
}

/// What a fetch has to stay behind: the use of the one `depth` before it, or the end of that use; null when
/// it stays.
Operation *limitOf(const FetchGroup &group, ArrayRef<FetchGroup> before, const Depths &depths) {
  int64_t depth = group.isBackward ? depths.backward : depths.forward;
  if (depth <= 0 || before.empty())
    return nullptr;
  const FetchGroup &use = before[before.size() - std::min<size_t>(depth, before.size())];
  if (!group.isBackward || !depths.afterBackward || !use.isBackward)
    return use.finalWaits.back();
  Operation *release = releaseOf(use.gathered);
  return release && release->isBeforeInBlock(group.ops.front()) ? release : nullptr;
}

/// Copies from the host that feed an all-gather of the group start where the group before stands, so that the
/// wait between the two finds them done.
void moveUpInnerCopies(const FetchGroup &group, const FetchGroup &before) {
  StartOp last = group.lastStart();
  for (Operation *op : group.ops) {
    auto start = dyn_cast<StartOp>(op);
    if (!start || start == last || start.getTransfer() != Transfer::copy)
      continue;
    SmallVector<Operation *> ops;
    for (Value out : start.getOuts())
      if (auto buffer = out.getDefiningOp<BufferOp>(); buffer && !buffer.getPersistent())
        ops.push_back(buffer);
    ops.push_back(start);
    moveUp(ops, {before.lastStart()});
  }
}

void moveFetchesUp(ProgramOp program, const Depths &depths) {
  SmallVector<FetchGroup> groups = findFetchGroups(program);
  for (Stream stream : {Stream::gather, Stream::h2d}) {
    SmallVector<FetchGroup> before;
    for (const FetchGroup &group : groups) {
      if (group.stream != stream)
        continue;
      if (Operation *limit = limitOf(group, before, depths)) {
        moveUp(group.ops, {limit, before.back().lastStart()}); // a stream keeps its order
        moveUpInnerCopies(group, before.back());
      }
      before.push_back(group);
    }
  }
}

/// The wait of everything else moves down to the first instruction that touches its buffers; that of a
/// transfer that holds memory of its own no further than to the next start on its stream.
void moveWaitsDown(ProgramOp program) {
  for (auto beside : program.getOps<BesideOpInterface>()) {
    WaitOp wait = waitOf(beside);
    if (isFetch(beside) || !wait)
      continue;
    auto start = dyn_cast<StartOp>(beside.getOperation());
    bool holdsMemory = start && (start.getUnit() || start.getTransfer() == Transfer::copy);
    Operation *op = wait->getNextNode();
    for (; op && !isa<OutputOp>(op) && !conflictInFlight(op, beside); op = op->getNextNode())
      if (auto next = dyn_cast<StartOp>(op); holdsMemory && next && next.getStream() == start.getStream())
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
    if (prefetch != "pre" && prefetch != "post" && prefetch != "none") {
      getOperation().emitError() << "prefetch must be 'pre', 'post' or 'none', not '" << prefetch << "'";
      return signalPassFailure();
    }
    if (!reason.empty())
      explain();
    if (prefetch == "none")
      return;
    int64_t ahead = limitAllGathers == 0 ? std::numeric_limits<int64_t>::max() : limitAllGathers - 1;
    Depths depths{std::min<int64_t>(forwardPrefetch, ahead), std::min<int64_t>(1, ahead), prefetch == "post"};
    for (ProgramOp program : getOperation().getOps<ProgramOp>()) {
      moveFetchesUp(program, depths);
      moveWaitsDown(program);
    }
  }

  void explain() {
    for (ProgramOp program : getOperation().getOps<ProgramOp>())
      for (auto beside : program.getOps<BesideOpInterface>())
        beside.setReasonAttr(StringAttr::get(&getContext(), reason.getValue()));
  }
};

} // namespace
} // namespace ft::compiler
