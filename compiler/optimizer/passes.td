#ifndef FT_OPTIMIZER_PASSES
#define FT_OPTIMIZER_PASSES

include "compiler/settings.td"
include "mlir/Pass/PassBase.td"

def AssignRulesPass : Pass<"ft-assign-rules", "::mlir::ModuleOp"> {
  let summary = "Say of each parameter which row of the table of optimizers updates it, where the job's is for hidden matrices alone";
  let description = [{
    Enters: @train_step, differentiated. Leaves: the attribute `rule` on trained parameters of two dimensions or more that products alone read, none of
    which makes logits: embeddings, heads, norms and biases have none, nor does what `adamw-params` names. Nothing for other optimizers.
  }];
  let options = AssignRulesSettings # [Option<"optimizer", "optimizer", "std::string", "\"adamw\"", "A row of compiler/optimizer/rules.cc">];
  let dependentDialects = ["::mlir::ft::FtDialect"];
}

def ExpandOrthogonalizePass : Pass<"ft-expand-orthogonalize", "::mlir::ModuleOp"> {
  let summary = "Write ft.orthogonalize in products and elementwise ops on views of its matrices";
  let description = [{
    Enters: gathers are in place, types are not final: products are in the type that the model computes with. Leaves: no ft.orthogonalize; views of its
    operand, Newton-Schulz steps on each, one ft.pack.
  }];
  let dependentDialects = ["::mlir::ft::FtDialect"];
}

def InsertOptimizerPass : Pass<"ft-insert-optimizer", "::mlir::ModuleOp"> {
  let summary = "Append clipping by the global norm and the optimizer to @train_step; make @init";
  let description = [{
    Enters: units formed, each with a flat gradient. Leaves: the sum of squares over all flat gradients, one clip coefficient, one
    ft.update per unit (two around an ft.orthogonalize where its rule wants whole matrices), by the bodies of
    compiler/optimizer/rules.cc; with dynamic loss scaling (an input "scaler") its update; @train_step returns (loss, gradient
    norm before clipping). @init draws every parameter.
    Sums over ranks are made means with the input "inverse_ranks": that of the loss by a product; those of gradients in ft.sum_squares and in the body,
    unless backward begins with that input.
    Weight decay applies to parameters of rank 2 and more without `no_decay`. With `stochastic-rounding` each step draws from the stream of the
    parameter's place in the module, so that units do not matter.
  }];
  let options = InsertOptimizerSettings #
                [Option<"dynamicScale", "dynamic-scale", "bool", "true", "The loss scale backs off and grows">];
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
  let summary = "Check what leaves the optimizer stage: every flat gradient counts in the norm and is used by one step, every parameter is drawn once";
}

#endif // FT_OPTIMIZER_PASSES
