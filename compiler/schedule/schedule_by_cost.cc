// List scheduling over a cost model.
//
// Enters: programs in which every start is followed by its wait. Leaves: the same instructions, starts and
// waits moved as passes.td says. Refused: an unknown target.
#include "compiler/schedule/passes.h"

#include "compiler/schedule/fetch_groups.h"
#include "compiler/schedule/timeline.h"
#include "runtime/targets/shipped_targets.h"
#include "llvm/ADT/DenseSet.h"
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

/// What moves up as one: a unit's gather with the casts into it, or a copy from the host.
struct Fetch {
  SmallVector<Operation *> ops; // in order; the last start among them is what takes time
  SmallVector<StartOp> starts;  // on one stream
  Operation *deadline;          // it has to be done here: its first use, or the gather that it feeds
  Operation *limit;             // the first instruction in front of which it can stand
  uint64_t bytes = 0;           // of device memory, from its start on
  size_t feeds = 0;             // of a copy that feeds a gather: the number of that gather, plus 1
  Operation *place = nullptr;   // in front of which it goes; null: it stays
  std::string reason = "first use";

  Operation *position() const { return place ? place : ops.front(); }
};

class CostScheduler {
public:
  CostScheduler(ProgramOp program, const Sizes &sizes, const Target &target, uint64_t budget)
      : program(program), sizes(sizes), target(target), budget(budget), timeline(program, sizes, target),
        memory(program, sizes) {}

  void run() {
    collect();
    placeFetches(gathers);
    for (Fetch &copy : copies)
      if (copy.feeds > 0)
        copy.deadline = gathers[copy.feeds - 1].position();
    llvm::stable_sort(copies,
                      [](const Fetch &a, const Fetch &b) { return a.deadline->isBeforeInBlock(b.deadline); });
    placeFetches(copies);
    // What feeds a gather goes along with it.
    for (Fetch &copy : copies)
      if (copy.feeds > 0 && !copy.place)
        copy.place = gathers[copy.feeds - 1].place;
    for (SmallVector<Fetch> *fetches :
         {&copies, &gathers}) // copies first: a gather in the same place waits for its own
      for (Fetch &fetch : *fetches)
        move(fetch);
    placeWaits();
  }

private:
  //===--------------------------------------------------------------------===//
  // Fetches
  //===--------------------------------------------------------------------===//

  void collect() {
    for (FetchGroup &group : findFetchGroups(program)) {
      moving.insert(group.ops.begin(), group.ops.end());
      Operation *first = group.ops.front();
      Fetch whole{
          .ops = {}, .starts = {}, .deadline = first, .limit = highestPlace(group.ops, first, nullptr)};
      whole.bytes = bytesOf(group.ops);
      if (group.stream == Stream::h2d) {
        whole.ops = group.ops;
        whole.starts = startsOf(group.ops);
        copies.push_back(std::move(whole));
        continue;
      }
      llvm::DenseSet<Operation *> apart;
      for (StartOp start : startsOf(group.ops)) {
        if (start.getStream() != Stream::h2d) {
          whole.starts.push_back(start);
          continue;
        }
        Fetch feeding = copyAlone(start);
        feeding.feeds = gathers.size() + 1;
        apart.insert(feeding.ops.begin(), feeding.ops.end());
        copies.push_back(std::move(feeding));
      }
      llvm::copy_if(group.ops, std::back_inserter(whole.ops),
                    [&](Operation *op) { return !apart.contains(op); });
      gathers.push_back(std::move(whole));
    }
  }

  Fetch copyAlone(StartOp start) const {
    Fetch copy;
    for (Value out : start.getOuts())
      if (auto buffer = out.getDefiningOp<BufferOp>(); !buffer.getPersistent())
        copy.ops.push_back(buffer);
    copy.bytes = bytesOf(copy.ops);
    copy.ops.push_back(start);
    copy.starts.push_back(start);
    copy.deadline = copy.ops.front();
    copy.limit = highestPlace(copy.ops, start, nullptr);
    copy.reason = "feeds the gather behind it";
    return copy;
  }

  static SmallVector<StartOp> startsOf(ArrayRef<Operation *> ops) {
    SmallVector<StartOp> starts;
    for (Operation *op : ops)
      if (auto start = dyn_cast<StartOp>(op))
        starts.push_back(start);
    return starts;
  }

  uint64_t bytesOf(ArrayRef<Operation *> ops) const {
    uint64_t bytes = 0;
    for (Operation *op : ops)
      if (auto buffer = dyn_cast<BufferOp>(op); buffer && !buffer.getHost())
        bytes += sizes.roundedBytesOf(buffer);
    return bytes;
  }

  double secondsOf(const Fetch &fetch) const {
    double seconds = 0;
    for (StartOp start : fetch.starts)
      seconds += transferSeconds(start, sizes, target);
    return seconds;
  }

  /// Those of one stream, from the last to the first: each as late as it can be.
  void placeFetches(MutableArrayRef<Fetch> fetches) {
    double streamIsFree = std::numeric_limits<double>::infinity(); // until the fetches behind need it
    for (Fetch &fetch : llvm::reverse(fetches)) {
      double use = timeline.beginOf(fetch.deadline), end = std::min(use, streamIsFree);
      place(fetch, end - secondsOf(fetch), /*isEarly=*/end < use);
      streamIsFree = std::min(fetch.place ? timeline.beginOf(fetch.place) : use, streamIsFree);
    }
    // A stream runs in order: what memory keeps back keeps back what follows.
    for (size_t i = 1; i < fetches.size(); ++i)
      if (fetches[i].place && fetches[i].place->isBeforeInBlock(fetches[i - 1].position()))
        keepBehind(fetches[i], fetches[i - 1]);
  }

  /// Moves up so that it begins by `latest`, as far as it can.
  void place(Fetch &fetch, double latest, bool isEarly) {
    double use = timeline.beginOf(fetch.deadline), begin = use;
    bool isFull = false;
    for (Operation *op = fetch.deadline; op != fetch.limit && begin > latest && !isFull;) {
      op = op->getPrevNode();
      if (!isInstruction(op) || moving.contains(op))
        continue;
      isFull = exceeds(op, fetch);
      if (!isFull) {
        fetch.place = op;
        begin = timeline.beginOf(op);
      }
    }
    if (!fetch.place)
      return;
    std::string behind = milliseconds(use - begin) + " of computation, from " + nameOf(fetch.place) + " on";
    if (begin <= latest)
      fetch.reason =
          "hidden behind " + behind + (isEarly ? "; so early because the stream is needed by the next" : "");
    else if (isFull)
      fetch.reason = "hidden in part, behind " + behind + "; " + fetch.reason;
    else
      fetch.reason = "hidden in part, behind " + behind + "; nothing earlier leaves its buffers alone";
    memory.add(fetch.place, fetch.deadline, fetch.bytes);
  }

  /// Whether memory is too small for `fetch` to be there already at `op`; says so as its reason.
  bool exceeds(Operation *op, Fetch &fetch) const {
    uint64_t live = memory.liveAt(op) + fetch.bytes;
    if (budget == 0 || live <= budget)
      return false;
    fetch.reason = "memory: " + std::to_string(live - budget) + " bytes over the budget if earlier";
    return true;
  }

  static void keepBehind(Fetch &fetch, const Fetch &before) {
    fetch.place = before.place;
    for (Operation *op = before.ops.back(); !fetch.place; op = op->getNextNode())
      if (isa<WaitOp>(op))
        fetch.place = op; // for `before`, which stays
    if (fetch.deadline->isBeforeInBlock(fetch.place))
      fetch.place = nullptr;
    fetch.reason = "behind the one before it, which memory keeps back";
  }

  /// Layer and phase of the computation at `op`.
  static std::string nameOf(Operation *op) {
    while (op && !isa<KernelOp>(op))
      op = op->getNextNode();
    auto kernel = cast_or_null<KernelOp>(op);
    std::string name = kernel && kernel.getLayer() ? kernel.getLayer()->str() : "the step";
    return kernel && kernel.getPhase() ? name + " " + kernel.getPhase()->str() : name;
  }

  void move(Fetch &fetch) const {
    for (StartOp start : fetch.starts)
      explain(start, fetch.reason);
    if (fetch.place)
      for (Operation *op : fetch.ops)
        op->moveBefore(fetch.place);
  }

  //===--------------------------------------------------------------------===//
  // Other transfers
  //===--------------------------------------------------------------------===//

  /// From the first to the last: each wait where its transfer is done.
  void placeWaits() {
    llvm::DenseMap<Stream, double> isFree;
    for (StartOp start : program.getOps<StartOp>()) {
      WaitOp wait = waitOf(start);
      if (isFetch(start) || !wait)
        continue;
      double seconds = transferSeconds(start, sizes, target);
      double &streamIsFree = isFree[start.getStream()];
      streamIsFree = std::max(streamIsFree, timeline.beginOf(start)) + seconds;
      placeWait(start, wait, seconds, streamIsFree);
    }
  }

  void placeWait(StartOp start, WaitOp wait, double seconds, double end) {
    uint64_t bytes = heldBytes(start);
    Operation *place = wait->getNextNode();
    StringRef why = "its result is needed";
    for (; place && !isa<OutputOp>(place) && !conflictInFlight(place, start); place = place->getNextNode()) {
      // Fetches have come here from elsewhere: nothing can be told from their times.
      if (!isInstruction(place) || moving.contains(place))
        continue;
      if (timeline.beginOf(place) >= end) {
        why = "it is done by then";
        break;
      }
      if (budget != 0 && bytes > 0 && memory.liveAt(place) + bytes > budget) {
        why = "memory needs its buffers";
        break;
      }
      memory.add(place, bytes);
    }
    explain(start, "once it is ready, for " + milliseconds(seconds) + "; waited for where " + why);
    if (place)
      wait->moveBefore(place);
    else
      wait->moveBefore(wait->getBlock(), wait->getBlock()->end());
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
  SmallVector<Fetch> gathers, copies;
  llvm::DenseSet<Operation *> moving; // parts of fetches
};

struct ScheduleByCostPass : impl::ScheduleByCostPassBase<ScheduleByCostPass> {
  using ScheduleByCostPassBase::ScheduleByCostPassBase;

  ScheduleByCostPass(const ScheduleByCostPassOptions &options, const Target &figures)
      : ScheduleByCostPassBase(options), figures(figures) {}

  void runOnOperation() override {
    const Target *machine = figures ? &*figures : FindTarget(target.getValue());
    if (!machine) {
      getOperation().emitError() << "unknown target '" << target << "'; one of "
                                 << llvm::join(TargetNames(), ", ");
      return signalPassFailure();
    }
    Sizes sizes(getOperation(), {static_cast<int>(replica), static_cast<int>(shard)}, *machine);
    for (ProgramOp program : getOperation().getOps<ProgramOp>())
      CostScheduler(program, sizes, *machine, memoryBudget).run();
  }

private:
  std::optional<Target> figures; // else those of the shipped target named
};

} // namespace

std::unique_ptr<Pass> createScheduleByCostPass(const ScheduleByCostPassOptions &options,
                                               const Target &figures) {
  return std::make_unique<ScheduleByCostPass>(options, figures);
}

} // namespace ft::compiler
