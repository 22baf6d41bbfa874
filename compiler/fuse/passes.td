#ifndef FT_COMPILER_FUSE_PASSES
#define FT_COMPILER_FUSE_PASSES

include "mlir/Pass/PassBase.td"

def FuseLinearCrossEntropyPass : Pass<"ft-fuse-linear-cross-entropy", "::mlir::ModuleOp"> {
  let summary = "cross_entropy(matmul(x, weight)) becomes linear_cross_entropy, which never holds all logits";
  let description = [{
    Runs before differentiation. The product must have `transpose_b` (the weight is [V, D], as a head is
    stored), no bias, and no other use. Weights stored [D, V] are left alone: the fused kernels read rows of
    the vocabulary.
  }];
  let dependentDialects = ["::mlir::ft::FtDialect"];
}

def FuseLossGradPass : Pass<"ft-fuse-loss-grad", "::mlir::ModuleOp"> {
  let summary = "linear_cross_entropy and its gradient become one pass over the logits";
  let description = [{
    Runs after differentiation. The upstream gradient of the loss must be a constant, `ft.fill`, or the loss scale of the
    input "scaler", `ft.loss_scale`, possibly through `ft.scale`; the scale moves up with it. The fused op takes the forward op's place and phase, so that the logits are computed
    once, in the forward phase; when the gradient continues a sum (`into`) that is only known later, it takes
    the gradient op's place instead, provided nobody uses the loss before. If neither is possible the two
    stay apart.
  }];
  let dependentDialects = ["::mlir::ft::FtDialect"];
}

#endif  // FT_COMPILER_FUSE_PASSES
