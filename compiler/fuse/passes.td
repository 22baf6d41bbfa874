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
    Runs after differentiation. The upstream gradient of the loss must be a constant, `ft.fill`, the loss scale of the
    input "scaler", `ft.loss_scale`, or the input "inverse_ranks", possibly through `ft.scale` and products; what makes it moves up with it. The fused op takes the forward op's place and phase, so that the logits are computed
    once, in the forward phase; when the gradient continues a sum (`into`) that is only known later, it takes
    the gradient op's place instead, provided nobody uses the loss before. If neither is possible the two
    stay apart.
  }];
  let dependentDialects = ["::mlir::ft::FtDialect"];
}

def FuseGeluPass : Pass<"ft-fuse-gelu", "::mlir::ModuleOp"> {
  let summary = "A matmul and the GELU of it become one kernel, a matmul and the gradient of GELU that takes it another";
  let description = [{
    Calls of composites that are `ft.gelu`, or its derivative, by their origin. `matmul_gelu` and `matmul_gelu_grad` give the bits of the two ops; a GPU's
    library computes GELU, or multiplies by its derivative, where the product leaves the registers. Runs on what the stages before have decided, ahead of lowering: recomputation chooses between product and
    GELU separately and reports them so, and a GELU that is computed again from a kept product stays a GELU. The fused op stands where the
    product stood, and both must be of one phase. The product is a result of `matmul_gelu` only where others read it. In forward no kernel may
    run between the two; in backward others may, since the gradient takes the product's buffer. Only the tanh form: libraries have no other.
  }];
  let dependentDialects = ["::mlir::ft::FtDialect"];
}

def FuseBiasGradPass : Pass<"ft-fuse-bias-grad", "::mlir::ModuleOp"> {
  let summary = "The gradient of a weight, and the sum that is its bias's, become one kernel that reads the upstream gradient once";
  let description = [{
    Runs when clusters have been formed, and takes those that are nothing but the sum over rows of what a matmul with `transpose_a` reads: a sum
    that met other ops in a cluster costs no reading of its own, and stays there. Operands have 16 bits, of which alone libraries have this epilogue. `matmul_bias_grad` gives the bits of the two. It stands where the product
    stood, with its layer and phase, where nobody reads the sum before. A sum that goes on from another stays apart, as in all micro-steps with `--accumulate=last`:
    libraries have no such epilogue.
  }];
  let dependentDialects = ["::mlir::ft::FtDialect"];
}

#endif  // FT_COMPILER_FUSE_PASSES
