#ifndef FT_OPTIMIZER_PASSES
#define FT_OPTIMIZER_PASSES

include "mlir/Pass/PassBase.td"

def InsertOptimizerPass : Pass<"ft-insert-optimizer", "::mlir::ModuleOp"> {
  let summary = "Append clipping by the global norm and the optimizer to @train_step; make @init";
  let description = [{
    Enters: units formed, each with a flat gradient. Leaves: the sum of squares over all flat gradients, one clip coefficient, one
    ft.update per unit, by one body (compiler/optimizer/rules.cc); with dynamic loss scaling (an input "scaler") its update; @train_step returns (loss, gradient
    norm before clipping, bitmap of the ranks whose loss or gradient is not finite). @init draws every parameter.
    Weight decay applies to parameters without `no_decay`. With `stochastic-rounding` each step draws from the stream of the
    parameter's place in the module, so that units do not matter.
  }];
  let options = [
    Option<"optimizer", "optimizer", "std::string", "\"adamw\"", "A row of compiler/optimizer/rules.cc">,
    Option<"beta1", "beta1", "double", "0.9", "Decay of the first moment">,
    Option<"beta2", "beta2", "double", "0.95", "Decay of the second moment">,
    Option<"eps", "eps", "double", "1e-8", "Added to the root of the second moment">,
    Option<"weightDecay", "weight-decay", "double", "0.1", "Decoupled weight decay; part of the gradient for adam and sgd">,
    Option<"momentum", "momentum", "double", "0", "sgd: momentum">,
    Option<"nesterov", "nesterov", "bool", "false", "sgd: Nesterov's momentum">,
    Option<"stochasticRounding", "stochastic-rounding", "bool", "false", "Round updated 16-bit weights up or down at random, keeping the mean">,
    Option<"clip", "clip", "double", "1.0", "Largest global gradient norm; 0 does not clip">,
    Option<"dynamicScale", "dynamic-scale", "bool", "true", "The loss scale backs off and grows">,
    Option<"growthInterval", "growth-interval", "int64_t", "2000", "Good steps after which the loss scale grows">,
    Option<"hysteresis", "hysteresis", "int64_t", "1", "Skipped steps after which it backs off">,
    Option<"minScale", "min-scale", "double", "0", "Least loss scale">
  ];
  let dependentDialects = ["::mlir::ft::FtDialect"];
}

def FormUpdatesPass : Pass<"ft-form-updates", "::mlir::ModuleOp"> {
  let summary = "Make clusters of the bodies of ft.update, with the types that gradients, weights and copies have";
  let description = [{
    Enters: element types are final. Leaves: bodies of ft.update that take the gradient, the parameter, states and scalars as they lie in memory, and
    return parameter (in f32 where it is rounded stochastically, behind the body), states and, where there is one, the 16-bit working copy. A
    coefficient that is NaN selects what was there.
  }];
  let dependentDialects = ["::mlir::ft::FtDialect"];
}

def VerifyOptimizerPass : Pass<"ft-verify-optimizer", "::mlir::ModuleOp"> {
  let summary = "Check what leaves the optimizer phase: every flat gradient counts in the norm and is used by one step, every parameter is drawn once";
}

#endif // FT_OPTIMIZER_PASSES
