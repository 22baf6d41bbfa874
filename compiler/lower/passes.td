#ifndef FT_COMPILER_LOWER_PASSES
#define FT_COMPILER_LOWER_PASSES

include "mlir/Pass/PassBase.td"

def LowerToFtxPass : Pass<"ft-lower-to-ftx", "::mlir::ModuleOp"> {
  let summary = "Turns @init and @train_step into programs over buffers";
  let description = [{
    Enters: functions of one block after the shard stage. Leaves: persistent buffers, `ftx.unit_state`s and
    one `ftx.program` per function, its instructions in the order of the block; a collective is waited for
    right after its start.

    Every value gets a buffer of its own, except: a view lies in the buffer that it looks into; a reshape is an alias
    of what a kernel has computed, or of a parameter that is neither released nor written before the alias dies, and a copy of anything
    else (an input, what was reloaded or reduced); a gradient
    that is packed is written straight to its place in the flat gradient; a result that accumulates into an
    operand has that operand's buffer; an elementwise result takes over the buffer of an operand that dies;
    what a function returns is written to the buffer of its port. Where a value cannot be in the place that
    is asked of it, a copy is made.
  }];
  let dependentDialects = ["::mlir::ft::FtDialect", "::mlir::ftx::FtxDialect"];
}

#endif  // FT_COMPILER_LOWER_PASSES
