#ifndef FT_REMAT_PASSES
#define FT_REMAT_PASSES

include "compiler/settings.td"
include "mlir/Pass/PassBase.td"

def ChooseRematPass : Pass<"ft-choose-remat", "::mlir::ModuleOp"> {
  let summary = "Decide what becomes of each activation that backward needs: keep, recompute, offload";
  let description = [{
    Sets the attribute `remat` on every forward op whose results backward reads, itself or to compute others again. Policies:

    - `none`: all are kept.
    - `every_n:N`: groups of N consecutive layers. What a group hands on to others is kept, the rest of it is computed again.
      Layers that keep nothing of their own for backward (look-ups) are in no group, nor is the last one, whose backward
      comes at once.
    - `full`: every_n:1.
    - `segments:K`: K groups of nearly equal length; `segments:sqrt` makes about as many as there are layers in one.
    - `ops:CLASS[,CLASS]`: the ops of these classes (attention, mlp, norms) everywhere.

    With `offload-activations`, activations that are kept go to host memory, except scalars, and those that backward wants at once because
    they are read by the gradients of the last layer.
  }];
  let options = ChooseRematSettings;
}

def ApplyRematPass : Pass<"ft-apply-remat", "::mlir::ModuleOp"> {
  let summary = "Compute again, in front of their first reader in backward, the ops marked `remat = \"recompute\"`";
  let description = [{
    A clone has phase "recompute" and the layer of its original; an op is cloned once per function, when its results, or clones of
    its readers, are first needed. Clones stand right before that op, in the order of forward. Only those of another layer that
    read parameters go in front of the run of ops of one layer in which it stands, so that they don't part its gather in two.
    Random ops draw the same numbers again. Common subexpressions must not be eliminated after this pass.
  }];
}

def InsertOffloadPass : Pass<"ft-insert-offload", "::mlir::ModuleOp"> {
  let summary = "Move the results of ops marked `remat = \"offload\"` to host memory between forward and backward";
  let description = [{
    `ft.offload` right after the last reader in forward, `ft.reload` right before the first one in backward; all later readers
    read what was reloaded.
  }];
  let dependentDialects = ["::mlir::ft::FtDialect"];
}

def VerifyRematPass : Pass<"ft-verify-remat", "::mlir::ModuleOp"> {
  let summary = "Check what leaves the remat stage";
  let description = [{
    Backward reads no result marked "recompute"; every op of phase "recompute" equals an original so marked, in name,
    attributes, layer and (mapped) operands, and is the only one; what is marked "offload" is read in backward only through one
    ft.reload; only activations of the forward phase are marked.
  }];
}

def RecordSavedPass : Pass<"ft-record-saved", "::mlir::ModuleOp"> {
  let summary = "Write down, for the plan, what became of each activation that backward needs";
  let description = [{
    The module's attribute `ft.saved` lists the marked ops of `@train_step`, in order: value ("transformer.h.0.gelu"), layer, choice,
    bytes of the results, FLOPs of computing them again. Runs when tensors have their final types.
  }];
}

#endif // FT_REMAT_PASSES
