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

void explain(BesideOpInterface beside, const llvm::Twine &reason) {
  beside.setReasonAttr(StringAttr::get(beside.getContext(), reason));
}

/// What moves up as one: a unit's gather with the casts into it, or a copy from the host.
struct Fetch {
  SmallVector<Operation *> ops; // in order; the last start among them is what takes time
  SmallVector<StartOp> starts;  // on one stream
  Operation *deadline;          // it has to be done here: its first use, or the gather that it feeds
  size_t limit;                 // the number of the first instruction in front of which it can stand
  uint64_t bytes = 0;           // of device memory, from its start on
  size_t feeds = 0;             // of a copy that feeds a gather: the number of that gather, plus 1
  Operation *place = nullptr;   // in front of which it goes; null: it stays
  std::string reason = "first use";

  Operation *position() const { return place ? place : ops.front(); }
};

// More than any program has.
constexpr int64_t kHidden = int64_t{1} << 62;

class CostScheduler {
public:
  CostScheduler(ProgramOp program, const Costs &costs, const InstructionOrder &order,
                std::vector<double> seconds, uint64_t budget)
      : program(program), costs(costs),
        budget(static_cast<int64_t>(std::min<uint64_t>(budget, std::numeric_limits<int64_t>::max()))),
        order(order), timeline(order, std::move(seconds)), memory(liveBytes(program, order.size(), costs)) {}

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
    BufferAccesses accesses(order);
    for (FetchGroup &group : findFetchGroups(program)) {
      hideFromPlaces(group.ops);
      Operation *first = group.ops.front();
      Fetch whole{
          .ops = {}, .starts = {}, .deadline = first, .limit = highestPlace(accesses, group.ops, first)};
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
        Fetch feeding = copyAlone(accesses, start);
        feeding.feeds = gathers.size() + 1;
        apart.insert(feeding.ops.begin(), feeding.ops.end());
        copies.push_back(std::move(feeding));
      }
      llvm::copy_if(group.ops, std::back_inserter(whole.ops),
                    [&](Operation *op) { return !apart.contains(op); });
      gathers.push_back(std::move(whole));
    }
  }

  /// No fetch stands in front of a part of another one: as if nothing there could exceed a budget.
  void hideFromPlaces(ArrayRef<Operation *> ops) {
    moving.insert(ops.begin(), ops.end());
    for (Operation *op : ops)
      if (isInstruction(op))
        memory.add(order.numberOf(op), order.numberOf(op) + 1, -kHidden);
  }

  size_t highestPlace(const BufferAccesses &accesses, ArrayRef<Operation *> ops, Operation *from) const {
    std::optional<size_t> conflict = accesses.lastConflict(ops, order.numberOf(from));
    return conflict ? *conflict + 1 : 0;
  }

  Fetch copyAlone(const BufferAccesses &accesses, StartOp start) const {
    Fetch copy;
    for (Value out : start.getOuts())
      if (auto buffer = out.getDefiningOp<BufferOp>(); !buffer.getPersistent())
        copy.ops.push_back(buffer);
    copy.bytes = bytesOf(copy.ops);
    copy.ops.push_back(start);
    copy.starts.push_back(start);
    copy.deadline = copy.ops.front();
    copy.limit = highestPlace(accesses, copy.ops, start);
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
        bytes += costs.bytesOf(buffer);
    return bytes;
  }

  double secondsOf(const Fetch &fetch) const {
    double seconds = 0;
    for (StartOp start : fetch.starts)
      seconds += secondsOf(start);
    return seconds;
  }

  /// Those of one stream, from the last to the first: each as late as it can be.
  void placeFetches(MutableArrayRef<Fetch> fetches) {
    double streamIsFree = std::numeric_limits<double>::infinity(); // until the fetches behind need it
    for (Fetch &fetch : llvm::reverse(fetches)) {
      double use = beginOf(fetch.deadline), end = std::min(use, streamIsFree);
      place(fetch, end - secondsOf(fetch), /*isEarly=*/end < use);
      streamIsFree = std::min(fetch.place ? beginOf(fetch.place) : use, streamIsFree);
    }
    // A stream runs in order: what memory keeps back keeps back what follows.
    for (size_t i = 1; i < fetches.size(); ++i)
      if (fetches[i].place && fetches[i].place->isBeforeInBlock(fetches[i - 1].position()))
        keepBehind(fetches[i], fetches[i - 1]);
  }

  /// Moves up so that it begins by `latest`, as far as it can.
  void place(Fetch &fetch, double latest, bool isEarly) {
    size_t deadline = order.numberOf(fetch.deadline);
    double use = timeline.beginOf(deadline);
    if (use <= latest)
      return;
    std::optional<size_t> full = lastTooFull(fetch, deadline);
    size_t enough = lastPlaceBy(latest);
    size_t highest = std::max({fetch.limit, enough, full ? *full + 1 : 0});
    bool isFull = full && *full >= enough;
    if (isFull)
      fetch.reason = "memory: " + std::to_string(memory.at(*full) + signedBytes(fetch) - budget) +
                     " bytes over the budget if earlier";
    highest = firstPlaceFrom(highest, order);
    if (highest >= deadline)
      return;
    fetch.place = order[highest];
    double begin = timeline.beginOf(highest);
    std::string behind = milliseconds(use - begin) + " of computation, from " + nameOf(fetch.place) + " on";
    if (begin <= latest)
      fetch.reason =
          "hidden behind " + behind + (isEarly ? "; so early because the stream is needed by the next" : "");
    else if (isFull)
      fetch.reason = "hidden in part, behind " + behind + "; " + fetch.reason;
    else
      fetch.reason = "hidden in part, behind " + behind + "; nothing earlier leaves its buffers alone";
    memory.add(highest, deadline, signedBytes(fetch));
  }

  /// The last instruction that begins by then and is not part of a fetch; 0 when there is none.
  size_t lastPlaceBy(double latest) const {
    size_t number = timeline.lastBeginningBy(latest).value_or(0);
    while (number > 0 && moving.contains(order[number]))
      --number;
    return number;
  }

  /// The first one from `number` on that is not part of a fetch; `size()` when there is none.
  size_t firstPlaceFrom(size_t number, const InstructionOrder &any) const {
    while (number < any.size() && moving.contains(any[number]))
      ++number;
    return number;
  }

  static int64_t signedBytes(const Fetch &fetch) { return static_cast<int64_t>(fetch.bytes); }

  double beginOf(Operation *op) const { return timeline.beginOf(order.numberOf(op)); }

  double secondsOf(Operation *instruction) const { return timeline.secondsOf(order.numberOf(instruction)); }

  /// The last instruction ahead of `deadline` at which memory is too small for `fetch` to be there already.
  std::optional<size_t> lastTooFull(const Fetch &fetch, size_t deadline) const {
    return budget == 0 ? std::nullopt : memory.lastAbove(fetch.limit, deadline, budget - signedBytes(fetch));
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
  // Other transfers, and kernels of the host
  //===--------------------------------------------------------------------===//

  /// From the first to the last: each wait where what it waits for is done.
  void placeWaits() {
    const InstructionOrder moved(program);
    const BufferAccesses accesses(moved);
    llvm::DenseMap<Stream, double> isFree;
    for (size_t number = 0; number < moved.size(); ++number) {
      auto beside = dyn_cast<BesideOpInterface>(moved[number]);
      WaitOp wait = beside && !isFetch(beside) ? waitOf(beside) : WaitOp();
      if (!wait)
        continue;
      double &streamIsFree = isFree[beside.getStream()];
      streamIsFree = std::max(streamIsFree, beginOf(beside)) + secondsOf(beside);
      placeWait(beside, wait, moved, accesses, streamIsFree);
    }
  }

  /// To the first place behind it where its buffers are touched, what it waits for is done (at `end`) or
  /// memory needs what that holds.
  void placeWait(BesideOpInterface beside, WaitOp wait, const InstructionOrder &moved,
                 const BufferAccesses &accesses, double end) {
    auto bytes = static_cast<int64_t>(heldBytes(beside));
    size_t behind = order.numberOf(wait) + 1;
    StringRef why = "it is done by then";
    // Fetches have come here from elsewhere: nothing can be told from their times.
    size_t place = firstPlaceFrom(std::max(behind, timeline.firstBeginningAt(end)), order);
    std::optional<size_t> full =
        budget == 0 || bytes == 0 ? std::nullopt : memory.firstAbove(behind, place, budget - bytes);
    if (full) {
      place = *full;
      why = "memory needs its buffers";
    }
    Operation *op = place < order.size() ? order[place] : nullptr;
    std::optional<size_t> conflict = accesses.firstConflict(beside, moved.numberOf(wait) + 1);
    if (conflict && (!op || *conflict <= moved.numberOf(op))) {
      op = moved[*conflict];
      size_t next = firstPlaceFrom(*conflict, moved);
      place = next < moved.size() ? order.numberOf(moved[next]) : order.size();
      why = "its result is needed";
    } else if (!op) {
      why = "its result is needed";
    }
    memory.add(behind, place, bytes);
    explain(beside, "once it is ready, for " + milliseconds(secondsOf(beside)) + "; waited for where " + why);
    if (op)
      wait->moveBefore(op);
    else
      moveToEnd(wait);
  }

  /// Before the outputs, which read what the program leaves.
  static void moveToEnd(WaitOp wait) {
    Block *block = wait->getBlock();
    Block::iterator end = block->end();
    while (end != block->begin() && isa<OutputOp>(*std::prev(end)))
      --end;
    wait->moveBefore(block, end);
  }

  /// Of buffers that live no longer than what runs beside.
  uint64_t heldBytes(BesideOpInterface beside) const {
    uint64_t bytes = 0;
    for (Value value : beside.getIns())
      if (auto buffer = value.getDefiningOp<BufferOp>(); !buffer.getPersistent() && !buffer.getHost())
        bytes += costs.bytesOf(buffer);
    return bytes;
  }

  ProgramOp program;
  const Costs &costs;
  const int64_t budget;          // bytes, 0: no limit
  const InstructionOrder &order; // as it was before anything moved
  const Timeline timeline;
  RangeMax memory; // bytes live at each instruction, hidden at parts of fetches
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
    FailureOr<Costs> costs =
        Costs::of(getOperation(), {static_cast<int>(replica), static_cast<int>(shard)}, *machine);
    if (failed(costs))
      return signalPassFailure();
    for (ProgramOp program : getOperation().getOps<ProgramOp>()) {
      const InstructionOrder order(program);
      FailureOr<std::vector<double>> seconds = costs->secondsOf(program);
      if (failed(seconds))
        return signalPassFailure();
      CostScheduler(program, *costs, order, *std::move(seconds), memoryBudget).run();
    }
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
