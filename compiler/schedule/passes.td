#ifndef FT_COMPILER_SCHEDULE_PASSES
#define FT_COMPILER_SCHEDULE_PASSES

include "mlir/Pass/PassBase.td"

def LowerToFtxPass : Pass<"ft-lower-to-ftx", "::mlir::ModuleOp"> {
  let summary = "Turns @init and @train_step into programs over buffers";
  let description = [{
    Enters: functions of one block after the shard phase. Leaves: persistent buffers, `ftx.unit_state`s and
    one `ftx.program` per function, its instructions in the order of the block; a collective is waited for
    right after its start.

    Every value gets a buffer of its own, except: a view lies in the buffer that it looks into; a gradient
    that is packed is written straight to its place in the flat gradient; a result that accumulates into an
    operand has that operand's buffer; an elementwise result takes over the buffer of an operand that dies;
    what a function returns is written to the buffer of its port. Where a value cannot be in the place that
    is asked of it, a copy is made.
  }];
  let dependentDialects = ["::mlir::ft::FtDialect", "::mlir::ftx::FtxDialect"];
}

def OverlapCollectivesPass : Pass<"ftx-overlap-collectives", "::mlir::ModuleOp"> {
  let summary = "Moves starts of collectives up and waits down, so that communication runs beside computation";
  let description = [{
    The start of a gather moves up to right after the wait of the gather before it: one unit is gathered
    while the one before is used, and never more than one ahead. The wait of a reduction moves down to the
    first instruction that touches its buffers; that of a unit's gradient no further than to the next start
    on its stream, so at most one of them is under way.
  }];
  let options = [Option<"prefetch", "prefetch", "std::string", "\"one\"",
                        "Gathers ahead of their use: one, or none for collectives that nothing overlaps">];
}

def VerifySchedulePass : Pass<"ftx-verify-schedule", "::mlir::ModuleOp"> {
  let summary = "Checks that no instruction can touch a buffer that another stream is still using";
  let description = [{
    Every start is waited for on `compute` exactly once; between the two no instruction touches its buffers
    unless both read; a gathered unit is not touched after its release; what is read has been written.
  }];
}

#endif  // FT_COMPILER_SCHEDULE_PASSES
