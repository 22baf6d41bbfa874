#ifndef FT_COMPILER_SCHEDULE_PASSES
#define FT_COMPILER_SCHEDULE_PASSES

include "compiler/settings.td"
include "mlir/Pass/PassBase.td"

def JoinTransfersPass : Pass<"ftx-join-transfers", "::mlir::ModuleOp"> {
  let summary = "Joins transfers that follow each other on a stream into buckets, which pay one latency";
  let description = [{
    Reductions of gradients that stay whole at rest wait for the next ones until `bucket-cap-mb` are together: they hold no
    memory of their own. Those of gradients that are staged do so up to `reduce-bucket-mb`; the staging buffers live longer for
    it, by at most that much. Gathers of one pass over the layers are made with the ones before, up to `gather-bucket-mb`; the later
    units live longer for it. A unit larger than the cap goes alone.
  }];
  let options = JoinTransfersSettings;
}

def DelaySecondSumsPass : Pass<"ftx-delay-second-sums", "::mlir::ModuleOp"> {
  let summary = "Starts a sum over replicas right before the next sum over shards";
  let description = [{
    With two axes a gradient is summed over shards, then over replicas. `compute` has to wait for the first sum before it starts the second: right
    behind the first that would leave the first with nothing to hide behind. So the second moves down to in front of the next sum over
    shards: until there computation goes on beside the first, and from there on both streams run beside it. Where no sum over
    shards follows, or something needs the result before, it stays.
  }];
}

def AdvanceHostStepPass : Pass<"ftx-advance-host-step", "::mlir::ModuleOp"> {
  let summary = "Starts what the optimizer's step on the host needs as early as it can be";
  let description = [{
    A reduced gradient that the host updates with is given up on the device when it was looked at (its norm) and copied down. Both move up to right behind the
    start of the next reduction, which runs meanwhile: so at most a few gradients are on the device, and copies run beside backward. A kernel of the host moves up to
    where the one before the one before it is done: the host computes one unit after the other while new weights go to the device.
  }];
}

def ScheduleByCostPass : Pass<"ftx-schedule-by-cost", "::mlir::ModuleOp"> {
  let summary = "Places each start as late as its transfer stays hidden behind computation, within a budget of memory";
  let description = [{
    Enters: programs in which every start is followed by its wait. Times come from the cost model of `target` (computation
    from FLOPs and bytes, transfers from latency and bandwidth) at the mesh given. Fetches are placed from the last to the first: a
    transfer must end before its use and before the next one on its stream begins; it starts no earlier than needed for
    that, never past an instruction that touches its buffers, and never so early that more than `memory-budget` bytes are
    live (0: no limit). The wait of any other transfer, or kernel of the host, stands where it is expected to be done. Each start says why it stands
    where it stands.
  }];
  let options = ScheduleByCostSettings # [
    Option<"target", "target", "std::string", "\"cpu\"", "Machine of the cost model">,
    Option<"replica", "replica", "int64_t", "1", "Ranks on the replica axis">,
    Option<"shard", "shard", "int64_t", "1", "Ranks on the shard axis">
  ];
}

def OverlapCollectivesPass : Pass<"ftx-overlap-collectives", "::mlir::ModuleOp"> {
  let summary = "Moves starts of fetches up and waits of other transfers down, so that they run beside computation";
  let description = [{
    A fetch is what brings a unit, state or an activation in before it is used: an all-gather, with the cast or the copy from
    the host that it needs, or such a copy alone. In forward it moves up to right behind the wait of the fetch
    `forward-prefetch` before it. In backward, with prefetch=pre, right behind the wait of the one before it, so that one
    unit is gathered while the one before computes gradients; with post, right behind the last use of the one before.
    `limit-all-gathers` bounds the units gathered ahead, the one in use included.
    The wait of any other transfer, or kernel of the host, moves down to the first instruction that touches its buffers; that of a unit's
    gradient and that of a copy no further than to the next start on its stream, so at most one of them is under way.
    With prefetch=none nothing moves.
  }];
  let options = OverlapCollectivesSettings # [
    Option<"reason", "reason", "std::string", "\"\"", "Why each start stands where it stands, when there is more to say than the rule">
  ];
}

def VerifySchedulePass : Pass<"ftx-verify-schedule", "::mlir::ModuleOp"> {
  let summary = "Checks that no instruction can touch a buffer that another stream is still using";
  let description = [{
    Every start is waited for on `compute` exactly once; between the two no instruction touches its buffers
    unless both read; a gathered unit is not touched after its release; what is read has been written.
  }];
}

#endif  // FT_COMPILER_SCHEDULE_PASSES
