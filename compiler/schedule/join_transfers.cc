// Buckets: transfers that follow each other on a stream become one, which pays its latency once.
//
// Enters: programs in which every start is followed by its wait. Leaves: the same, with fewer starts. What
// moves is the same, so no bit changes.
#include "compiler/schedule/passes.h"

#include "compiler/schedule/fetch_groups.h"
#include "dialects/ft/dialect.h"
#include "mlir/IR/SymbolTable.h"

namespace ft::compiler {

#define GEN_PASS_DEF_JOINTRANSFERSPASS
#include "compiler/schedule/passes.h.inc"

namespace {

using namespace mlir;
using namespace mlir::ftx;

constexpr double kMegabyte = 1024.0 * 1024.0;

class Joiner {
public:
  Joiner(ModuleOp module, double wholeCapMb, double stagedCapMb, double gatherCapMb)
      : symbols(module), wholeCap(wholeCapMb * kMegabyte), stagedCap(stagedCapMb * kMegabyte),
        gatherCap(gatherCapMb * kMegabyte) {}

  void joinReductions(ProgramOp program) {
    llvm::DenseMap<std::pair<uint32_t, uint32_t>, StartOp> open; // by transfer and axis
    for (StartOp start : llvm::make_early_inc_range(program.getOps<StartOp>())) {
      bool reduces =
          start.getTransfer() == Transfer::reduce_scatter || start.getTransfer() == Transfer::all_reduce;
      if (!reduces || !start.getUnit())
        continue;
      StartOp &bucket =
          open[{static_cast<uint32_t>(start.getTransfer()), static_cast<uint32_t>(*start.getAxis())}];
      bucket = bucket && canDelay(bucket, start) ? joinInto(bucket, start) : start;
    }
  }

  void joinGathers(ProgramOp program) {
    SmallVector<FetchGroup> groups = findFetchGroups(program);
    const FetchGroup *bucket = nullptr;
    StartOp bucketStart;
    for (const FetchGroup &group : groups) {
      StartOp start = group.lastStart();
      if (group.stream != Stream::gather)
        continue;
      if (bucket && bucket->isBackward == group.isBackward &&
          bytesOf(bucketStart) + bytesOf(start) <= gatherCap && alike(bucketStart, start) &&
          group.finalWaits.size() == 1 && moveBehind(group, bucketStart)) {
        // The earlier wait stands before both uses.
        WaitOp wait = waitOf(bucketStart);
        group.finalWaits.front()->erase();
        bucketStart = merge(bucketStart, start, /*place=*/start);
        wait.getTokenMutable().assign(bucketStart.getToken());
        continue;
      }
      bucket = &group;
      bucketStart = start;
    }
  }

private:
  /// Bytes of the units, without padding.
  double bytesOf(StartOp start) {
    double bytes = 0;
    for (Value buffer : start.getIns()) {
      auto definition = buffer.getDefiningOp<BufferOp>();
      auto unit =
          definition.getUnit() ? symbols.lookup<mlir::ft::UnitOp>(*definition.getUnit()) : mlir::ft::UnitOp();
      bytes +=
          static_cast<double>(definition.getBytes()) * (unit ? static_cast<double>(unit.getElements()) : 1.0);
    }
    return bytes;
  }

  /// Gradients that stay whole are reduced in their place: waiting costs no memory.
  double capOf(StartOp start) const {
    bool atRest = llvm::all_of(start.getIns(),
                               [](Value buffer) { return buffer.getDefiningOp<BufferOp>().getPersistent(); });
    return atRest ? wholeCap : stagedCap;
  }

  static Type elementOf(StartOp start) { return getViews(start.getIns(), start.getInViews()).front().type; }

  static bool alike(StartOp a, StartOp b) {
    return a.getTransfer() == b.getTransfer() && a.getStream() == b.getStream() &&
           a.getAxis() == b.getAxis() && elementOf(a) == elementOf(b) && a.getPhase() == b.getPhase();
  }

  bool canDelay(StartOp bucket, StartOp start) {
    if (!alike(bucket, start) || bytesOf(bucket) + bytesOf(start) > std::min(capOf(bucket), capOf(start)))
      return false;
    WaitOp own = waitOf(bucket);
    for (Operation *op = bucket->getNextNode(); op && op != start; op = op->getNextNode())
      if (op != own && conflictInFlight(op, bucket))
        return false;
    return true;
  }

  /// Delays `bucket` to the place of `start`.
  static StartOp joinInto(StartOp bucket, StartOp start) {
    WaitOp wait = waitOf(start);
    waitOf(bucket)->erase();
    StartOp both = merge(bucket, start, /*place=*/start);
    wait.getTokenMutable().assign(both.getToken());
    return both;
  }

  /// Moves a group up so that its start follows `start`.
  static bool moveBehind(const FetchGroup &group, StartOp start) {
    Operation *place = highestPlace(group.ops, group.ops.front(), {start});
    Operation *first = start->getNextNode();
    while (first && !isInstruction(first))
      first = first->getNextNode();
    if (place != first)
      return false;
    for (Operation *op : group.ops)
      op->moveBefore(place);
    return true;
  }

  /// One start in front of `place` for both; erases them, and whoever waits for them has to be told.
  static StartOp merge(StartOp first, StartOp second, Operation *place) {
    OpBuilder builder(place);
    auto concat = [](auto a, auto b) {
      SmallVector<Value> values(a);
      llvm::append_range(values, b);
      return values;
    };
    auto views = [&](ArrayAttr a, ArrayAttr b) {
      SmallVector<Attribute> all(a.getValue());
      llvm::append_range(all, b.getValue());
      return builder.getArrayAttr(all);
    };
    auto both = StartOp::create(
        builder, second.getLoc(), first.getToken().getType(), first.getTransfer(), first.getStream(),
        first.getAfter(), first.getAxisAttr(), first.getUnitAttr(), concat(first.getIns(), second.getIns()),
        views(first.getInViews(), second.getInViews()), concat(first.getOuts(), second.getOuts()),
        views(first.getOutViews(), second.getOutViews()), first.getLayerAttr(), first.getPhaseAttr(),
        StringAttr(), ArrayAttr());
    for (StartOp old : {first, second}) {
      old.getToken().replaceAllUsesWith(both.getToken());
      old.erase();
    }
    return both;
  }

  SymbolTable symbols;
  const double wholeCap, stagedCap, gatherCap; // bytes
};

struct JoinTransfersPass : impl::JoinTransfersPassBase<JoinTransfersPass> {
  using JoinTransfersPassBase::JoinTransfersPassBase;

  void runOnOperation() override {
    Joiner joiner(getOperation(), bucketCapMb, reduceBucketMb, gatherBucketMb);
    for (ProgramOp program : getOperation().getOps<ProgramOp>()) {
      joiner.joinReductions(program);
      if (gatherBucketMb > 0)
        joiner.joinGathers(program);
    }
  }
};

} // namespace
} // namespace ft::compiler
