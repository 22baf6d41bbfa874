#ifndef FT_COMPILER_MEMORY_PASSES
#define FT_COMPILER_MEMORY_PASSES

include "mlir/Pass/PassBase.td"

def AssignLiveRangesPass : Pass<"ftx-assign-live-ranges", "::mlir::ModuleOp"> {
  let summary = "Sets the first and the last instruction during which each buffer of a program is needed";
  let description = [{
    A buffer lives from the first instruction that touches it to the last; one that a collective touches
    lives at least until that collective is waited for. Buffers that nothing touches are removed. Sizes and
    so addresses depend on the mesh: runtime/memplan computes those when a plan is bound.
  }];
}

def VerifyLiveRangesPass : Pass<"ftx-verify-live-ranges", "::mlir::ModuleOp"> {
  let summary = "Checks that live ranges cover every use";
  let description = [{
    Each buffer of a program has a live range, inside the program, that covers every instruction that
    touches it and the wait of every collective that does.
  }];
}

#endif  // FT_COMPILER_MEMORY_PASSES
