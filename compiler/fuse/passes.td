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

def FuseQkvAttentionPass : Pass<"ft-fuse-qkv-attention", "::mlir::ModuleOp"> {
  let summary = "attention(split(x)) becomes qkv_attention, which reads q, k and v where the projection wrote them";
  let description = [{
    Runs before differentiation, so that the gradient is written side by side too. Nothing but the attention may use a part; with a
    rotation in between, say, the parts stay tensors of their own.
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

def FuseResidualNormPass : Pass<"ft-fuse-residual-norm", "::mlir::ModuleOp"> {
  let summary = "A residual sum and the norm that reads it first become one kernel, which does not read the sum back";
  let description = [{
    `add_layer_norm` and `add_rms_norm` give sum and norm with the bits of the two ops. Runs on what the phases before have decided,
    ahead of lowering: recomputation chooses between sum and norm separately and reports them so, and a norm that is computed
    again from a kept sum stays a norm. The fused op stands where the norm stood and is of its layer, whose parameters it
    reads; the sum belonged to the layer before. Both must be of one phase. No kernel may run between them, so that the terms of the
    sum live no longer than before, and a term that is a view of a parameter keeps them apart, since its unit may have been
    released by then.
  }];
  let dependentDialects = ["::mlir::ft::FtDialect"];
}

def FuseGeluPass : Pass<"ft-fuse-gelu", "::mlir::ModuleOp"> {
  let summary = "A matmul and the GELU of it become one kernel, a matmul and the gradient of GELU that takes it another";
  let description = [{
    `matmul_gelu` and `matmul_gelu_grad` give the bits of the two ops; a GPU's library computes GELU, or multiplies by its derivative, where
    the product leaves the registers. Runs on what the phases before have decided, ahead of lowering: recomputation chooses between product and
    GELU separately and reports them so, and a GELU that is computed again from a kept product stays a GELU. The fused op stands where the
    product stood, and both must be of one phase. The product is a result of `matmul_gelu` only where others read it. In forward no kernel may
    run between the two; in backward others may, since the gradient takes the product's buffer. Only the tanh form: libraries have no other.
  }];
  let dependentDialects = ["::mlir::ft::FtDialect"];
}

#endif  // FT_COMPILER_FUSE_PASSES
