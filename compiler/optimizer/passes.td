#ifndef FT_OPTIMIZER_PASSES
#define FT_OPTIMIZER_PASSES

include "compiler/settings.td"
include "mlir/Pass/PassBase.td"

def InsertOptimizerPass : Pass<"ft-insert-optimizer", "::mlir::ModuleOp"> {
  let summary = "Append clipping by the global norm and the optimizer to @train_step; make @init";
  let description = [{
    Enters: units formed, each with a flat gradient. Leaves: the sum of squares over all flat gradients, one clip coefficient, one
    step of the optimizer per unit; with dynamic loss scaling (an input "scaler") its update; @train_step returns (loss, gradient
    norm before clipping, bitmap of the ranks whose loss or gradient is not finite). @init draws every parameter.
    Weight decay applies to parameters without `no_decay`. With `stochastic-rounding` each step draws from the stream of the
    parameter's place in the module, so that units do not matter.
  }];
  let options = InsertOptimizerSettings #
                [Option<"dynamicScale", "dynamic-scale", "bool", "true", "The loss scale backs off and grows">];
  let dependentDialects = ["::mlir::ft::FtDialect"];
}

def VerifyOptimizerPass : Pass<"ft-verify-optimizer", "::mlir::ModuleOp"> {
  let summary = "Check what leaves the optimizer phase: every flat gradient counts in the norm and is used by one step, every parameter is drawn once";
}

#endif // FT_OPTIMIZER_PASSES
