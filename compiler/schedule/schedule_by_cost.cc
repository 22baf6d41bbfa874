// List scheduling over a cost model.
//
// Enters: programs in which every start is followed by its wait. Leaves: the same instructions, starts and
// waits moved as passes.td says. Refused: an unknown target.
#include "compiler/schedule/passes.h"

#include "compiler/schedule/fetch_groups.h"
#include "compiler/schedule/timeline.h"
#include "runtime/plan/target.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

namespace ft::compiler {

#define GEN_PASS_DEF_SCHEDULEBYCOSTPASS
#include "compiler/schedule/passes.h.inc"

namespace {

using namespace mlir;
using namespace mlir::ftx;

std::string milliseconds(double seconds) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.3g ms", seconds * 1e3);
  return text;
}

void explain(StartOp start, const llvm::Twine &reason) {
  start.setReasonAttr(StringAttr::get(start.getContext(), reason));
}

class CostScheduler {
public:
  CostScheduler(ProgramOp program, const Sizes &sizes, const Target &target, uint64_t budget)
      : program(program), sizes(sizes), target(target), budget(budget), timeline(program, sizes, target),
        memory(program, sizes) {}

  void run() {
    groups = findFetchGroups(program);
    SmallVector<Operation *> places(groups.size(), nullptr);
    for (Stream stream : {Stream::gather, Stream::h2d})
      placeFetches(stream, places);
    for (auto [group, place] : llvm::zip_equal(groups, places))
      if (place)
        moveTo(group, place);
    placeWaits();
  }

private:
  double secondsOf(const FetchGroup &group) const {
    double seconds = 0;
    for (Operation *op : group.ops)
      if (auto start = dyn_cast<StartOp>(op))
        seconds += transferSeconds(start, sizes, target);
    return seconds;
  }

  uint64_t bytesOf(const FetchGroup &group) const {
    uint64_t bytes = 0;
    for (Operation *op : group.ops)
      if (auto buffer = dyn_cast<BufferOp>(op); buffer && !buffer.getHost())
        bytes += sizes.roundedBytesOf(buffer);
    return bytes;
  }

  // From the last to the first: each fetch as late as it can be.
  void placeFetches(Stream stream, SmallVectorImpl<Operation *> &places) {
    double streamIsFree = std::numeric_limits<double>::infinity(); // from when the fetches behind need it
    for (size_t i = groups.size(); i-- > 0;) {
      FetchGroup &group = groups[i];
      if (group.stream != stream)
        continue;
      double use = timeline.beginOf(group.ops.front());
      double seconds = secondsOf(group), end = std::min(use, streamIsFree);
      places[i] = place(group, end - seconds, end < use);
      double begin = places[i] ? timeline.beginOf(places[i]) : use;
      streamIsFree = std::min(begin, streamIsFree);
    }
  }

  // The instruction in front of which the group goes so that it begins by `latest`; null when it stays.
  Operation *place(FetchGroup &group, double latest, bool forTheNext) {
    StartOp start = group.lastStart();
    Operation *first = group.ops.front(), *limit = highestPlace(group.ops, first, nullptr);
    uint64_t bytes = bytesOf(group);
    Operation *best = nullptr;
    std::string why = "first use";
    for (Operation *op = first; op != limit && timeline.beginOf(best ? best : first) > latest;) {
      op = op->getPrevNode();
      if (!isInstruction(op) || isMovable(op))
        continue;
      if (budget != 0 && memory.liveAt(op) + bytes > budget) {
        why = "memory: " + std::to_string(memory.liveAt(op) + bytes - budget) +
              " bytes over the budget if earlier";
        break;
      }
      best = op;
    }
    double hidden = best ? timeline.beginOf(first) - timeline.beginOf(best) : 0;
    if (best && timeline.beginOf(best) <= latest)
      why = "hidden behind " + milliseconds(hidden) + " of computation" +
            (forTheNext ? ", early so that the stream is free" : "");
    else if (why == "first use" && best)
      why = "hidden in part, behind " + milliseconds(hidden) +
            " of computation: nothing earlier leaves its buffers alone";
    explain(start, why);
    if (best)
      memory.add(best, first, bytes);
    return best;
  }

  /// Instructions of fetches go elsewhere; nothing is placed by them.
  bool isMovable(Operation *op) const {
    if (auto start = dyn_cast<StartOp>(op))
      return isFetch(start);
    auto kernel = dyn_cast<KernelOp>(op);
    return kernel && kernel.getKernel() == "cast";
  }

  void moveTo(const FetchGroup &group, Operation *place) {
    StartOp last = group.lastStart();
    for (Operation *op : group.ops)
      op->moveBefore(place);
    // What is copied from the host for the gather starts before the place by as long as it takes.
    for (Operation *op : group.ops) {
      auto start = dyn_cast<StartOp>(op);
      if (!start || start == last)
        continue;
      double latest = timeline.beginOf(place) - transferSeconds(start, sizes, target);
      SmallVector<Operation *> ops;
      for (Value out : start.getOuts())
        ops.push_back(out.getDefiningOp());
      ops.push_back(start);
      Operation *limit = highestPlace(ops, ops.front(), nullptr), *best = ops.front();
      while (best != limit && timeline.beginOf(best) > latest)
        best = best->getPrevNode();
      for (Operation *moved : ops)
        if (best != ops.front())
          moved->moveBefore(best);
      explain(start, "feeds the all-gather");
    }
  }

  // From the first to the last: each wait where its transfer is done.
  void placeWaits() {
    llvm::DenseMap<Stream, double> free;
    for (StartOp start : program.getOps<StartOp>()) {
      WaitOp wait = waitOf(start);
      if (isFetch(start) || !wait)
        continue;
      double seconds = transferSeconds(start, sizes, target);
      double &streamIsFree = free[start.getStream()];
      streamIsFree = std::max(streamIsFree, timeline.beginOf(start)) + seconds;
      uint64_t bytes = heldBytes(start);
      Operation *place = wait->getNextNode();
      std::string why = "its result is needed";
      for (; place && !isa<OutputOp>(place) && !conflictInFlight(place, start);
           place = place->getNextNode()) {
        if (!isInstruction(place))
          continue;
        if (timeline.beginOf(place) >= streamIsFree) {
          why = "done by then";
          break;
        }
        if (budget != 0 && memory.liveAt(place) + bytes > budget) {
          why = "memory: its buffers are needed";
          break;
        }
      }
      explain(start, "as soon as it is ready, in " + milliseconds(seconds) + "; waited for where " + why);
      if (bytes > 0)
        memory.add(wait, place ? place : &program.getBody().front().back(), bytes);
      if (place)
        wait->moveBefore(place);
      else
        wait->moveBefore(wait->getBlock(), wait->getBlock()->end());
    }
  }

  /// Of buffers that live no longer than the transfer.
  uint64_t heldBytes(StartOp start) const {
    uint64_t bytes = 0;
    for (Value value : start.getIns())
      if (auto buffer = value.getDefiningOp<BufferOp>(); !buffer.getPersistent() && !buffer.getHost())
        bytes += sizes.roundedBytesOf(buffer);
    return bytes;
  }

  ProgramOp program;
  const Sizes &sizes;
  const Target &target;
  const uint64_t budget;
  Timeline timeline;
  LiveMemory memory;
  SmallVector<FetchGroup> groups;
};

struct ScheduleByCostPass : impl::ScheduleByCostPassBase<ScheduleByCostPass> {
  using ScheduleByCostPassBase::ScheduleByCostPassBase;

  void runOnOperation() override {
    const Target *machine = FindTarget(std::string_view(target.getValue()));
    if (!machine) {
      getOperation().emitError() << "unknown target '" << target << "'; one of "
                                 << llvm::join(TargetNames(), ", ");
      return signalPassFailure();
    }
    Sizes sizes(getOperation(), replica, shard);
    for (ProgramOp program : getOperation().getOps<ProgramOp>())
      CostScheduler(program, sizes, *machine, memoryBudget).run();
  }
};

} // namespace
} // namespace ft::compiler
