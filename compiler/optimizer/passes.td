#ifndef FT_OPTIMIZER_PASSES
#define FT_OPTIMIZER_PASSES

include "mlir/Pass/PassBase.td"

def InsertOptimizerPass : Pass<"ft-insert-optimizer", "::mlir::ModuleOp"> {
  let summary = "Append clipping by the global norm and AdamW to @train_step; make @init";
  let description = [{
    Enters: units formed, each with a flat gradient. Leaves: the sum of squares over all flat gradients, one clip coefficient, one
    `ft.adamw` per unit; @train_step returns (loss, gradient norm before clipping). @init draws every parameter.
    Weight decay applies to parameters without `no_decay`.
  }];
  let options = [
    Option<"beta1", "beta1", "double", "0.9", "Decay of the first moment">,
    Option<"beta2", "beta2", "double", "0.95", "Decay of the second moment">,
    Option<"eps", "eps", "double", "1e-8", "Added to the root of the second moment">,
    Option<"weightDecay", "weight-decay", "double", "0.1", "Decoupled weight decay">,
    Option<"clip", "clip", "double", "1.0", "Largest global gradient norm; 0 does not clip">
  ];
  let dependentDialects = ["::mlir::ft::FtDialect"];
}

def VerifyOptimizerPass : Pass<"ft-verify-optimizer", "::mlir::ModuleOp"> {
  let summary = "Check what leaves the optimizer phase: every flat gradient counts in the norm and is used by one step, every parameter is drawn once";
}

#endif // FT_OPTIMIZER_PASSES
