#include "compiler/schedule/fetch_groups.h"

#include "dialects/ft/layer.h"

namespace ft::compiler {

using namespace mlir;
using namespace mlir::ftx;

StartOp FetchGroup::lastStart() const {
  for (Operation *op : llvm::reverse(ops))
    if (auto start = dyn_cast<StartOp>(op))
      return start;
  return {};
}

WaitOp waitOf(BesideOpInterface beside) {
  for (Operation *user : beside.getToken().getUsers())
    if (auto wait = dyn_cast<WaitOp>(user))
      return wait;
  return {};
}

bool conflictInFlight(Operation *op, Operation *other) {
  if (auto wait = dyn_cast<WaitOp>(op))
    op = wait.getToken().getDefiningOp();
  if (auto wait = dyn_cast<WaitOp>(other))
    other = wait.getToken().getDefiningOp();
  return conflict(op, other);
}

Operation *highestPlace(ArrayRef<Operation *> ops, Operation *from, ArrayRef<Operation *> limits) {
  Operation *place = from;
  for (Operation *op = from->getPrevNode(); op && !llvm::is_contained(limits, op); op = op->getPrevNode()) {
    if (isa<InputOp>(op) || llvm::any_of(ops, [&](Operation *mine) { return conflictInFlight(op, mine); }))
      break;
    if (isInstruction(op))
      place = op;
  }
  return place;
}

static bool isPersistent(Value buffer) {
  auto definition = buffer.getDefiningOp<BufferOp>();
  return !definition || definition.getPersistent();
}

bool isFetch(Operation *beside) {
  auto start = dyn_cast<StartOp>(beside);
  bool brings =
      start && (start.getTransfer() == Transfer::copy ? start.getStream() == Stream::h2d
                                                      : start.getTransfer() == Transfer::all_gather);
  return brings && llvm::none_of(start.getOuts(), isPersistent);
}

namespace {

/// A kernel that only prepares what a later start of the group sends: it writes nothing else.
bool prepares(Operation *op, StartOp next) {
  auto kernel = dyn_cast<KernelOp>(op);
  if (!kernel || kernel.getOuts().empty() || !next || !isFetch(next))
    return false;
  return llvm::all_of(kernel.getOuts(), [&](Value out) { return llvm::is_contained(next.getIns(), out); });
}

StartOp nextStart(Operation *op) {
  for (op = op->getNextNode(); op && isa<BufferOp>(op); op = op->getNextNode()) {
  }
  return dyn_cast_or_null<StartOp>(op);
}

/// Whether `op` belongs to a group that is being collected.
bool continues(Operation *op) {
  if (isa<BufferOp>(op))
    return true;
  if (auto start = dyn_cast<StartOp>(op))
    return isFetch(start);
  if (auto wait = dyn_cast<WaitOp>(op))
    return isFetch(wait.getToken().getDefiningOp());
  return prepares(op, nextStart(op));
}

/// Whether something later in `ops` uses what `wait` waits for: then the wait has to stay in between.
bool isInner(WaitOp wait, ArrayRef<Operation *> later) {
  return llvm::any_of(later, [&](Operation *op) { return !isa<WaitOp>(op) && conflictInFlight(wait, op); });
}

void finish(SmallVector<Operation *> &ops, SmallVector<FetchGroup> &groups) {
  FetchGroup group;
  for (auto [i, op] : llvm::enumerate(ops)) {
    auto wait = dyn_cast<WaitOp>(op);
    if (wait && !isInner(wait, ArrayRef(ops).drop_front(i + 1)))
      group.finalWaits.push_back(wait);
    else
      group.ops.push_back(op);
  }
  ops.clear();
  StartOp last = group.lastStart();
  if (!last)
    return;
  group.stream = last.getStream();
  group.isBackward = last.getPhase().value_or("") != mlir::ft::kPhaseForward;
  group.gathered = last.getOuts().front();
  groups.push_back(std::move(group));
}

} // namespace

SmallVector<FetchGroup> findFetchGroups(ProgramOp program) {
  SmallVector<FetchGroup> groups;
  SmallVector<Operation *> current;
  for (Operation &op : program.getBody().front()) {
    if (isa<InputOp, OutputOp>(op))
      continue;
    if (continues(&op))
      current.push_back(&op);
    else
      finish(current, groups);
  }
  finish(current, groups);
  return groups;
}

} // namespace ft::compiler
