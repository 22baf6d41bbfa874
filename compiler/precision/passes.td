#ifndef FT_PRECISION_PASSES
#define FT_PRECISION_PASSES

include "compiler/settings.td"
include "mlir/Pass/PassBase.td"

def ApplyPrecisionPass : Pass<"ft-apply-precision", "::mlir::ModuleOp"> {
  let summary = "Give activations and gathered parameters the compute type, gradients of parameters the reduce type";
  let description = [{
    Enters: the functions after the shard stage, all floats f32. In @train_step, @train_micro, @eval_step and @sample_step every float tensor of
    rank 1 and more gets the compute type `param-dtype`, but for statistics (`lse`) and state (`scaler`), which stay f32, and for gradients
    of parameters, which get `reduce-dtype`: the kernel that makes one computes in f32 and rounds once. Units are gathered in the
    compute type. Flat gradients and their slices have the reduce type. Where they are added up over micro-steps first, ops make them in `accumulate-dtype`,
    which is f32 or the compute type, and the sum is rounded to the reduce type once (ft.accumulated); where each micro-step's are reduced, the sums of slices have it.

    Each ft.unit is told `compute` (when that is not f32), `reduce`, `accumulate` (when that is not f32), and `working_copy` when what a rank holds of its
    parameters is kept in the compute type too, beside the f32 master: always, but for units that are gathered once and kept until
    backward, whose gather rounds the master. With fp32 for both types nothing changes.

    Without `master-weights`, parameters in bf16 are all that a rank keeps: each ft.unit is told `master = bf16` and has no working copy, and the
    optimizer rounds what it updates.

    Without `frozen-masters` that holds for units of frozen parameters, in any compute type.

    No element's rounding depends on the strategy: the master is rounded element by element, each rank's gradient is rounded
    before the sum over ranks, and that sum is accumulated in f32 and rounded once.
  }];
  let options = ApplyPrecisionSettings #
                [Option<"frozenMasters", "frozen-masters", "bool", "true", "fp32 weights of frozen units, which checkpoints then have as they came">];
  let dependentDialects = ["::mlir::ft::FtDialect"];
}

def MarkPrecisePass : Pass<"ft-mark-precise", "::mlir::ModuleOp"> {
  let summary = "Say which matrix products must not be rounded to 8 bits, whatever the recipe";
  let description = [{
    Enters: @forward, with all composites as ops. An ft.matmul is told `precise` when it makes the logits of the loss, or what ids are sorted by (the router
    of a mixture of experts), or when its weight is one of an adapter. Gradients of what is precise are.
  }];
}

def RoundProductsPass : Pass<"ft-round-products", "::mlir::ModuleOp"> {
  let summary = "Say which matrix products round their operands to floats of 8 bits";
  let description = [{
    Enters: functions whose floats have their types. With `fp8-recipe` tensorwise or blockwise each ft.matmul of bf16 in a numbered layer (transformer.h.3), which is neither `precise` nor a part of
    the optimizer, and whose weight has at least 64 rows and columns, both multiples of 16, is told the formats of its operands and the scaling:
    tensorwise e4m3, and e5m2 for gradients of activations, blockwise e4m3 for all. Products within attention and those of experts are other ops. An error where there is no such product. Nothing is `precise` afterwards.

    It depends on the op alone, so forward, recomputation and evaluation round alike, whatever the strategy.
  }];
  let options = RoundProductsSettings;
}

def VerifyPrecisionPass : Pass<"ft-verify-precision", "::mlir::ModuleOp"> {
  let summary = "Check what leaves the precision stage: one compute and one reduce type, statistics and scalars f32, nothing in between";
}

#endif // FT_PRECISION_PASSES
