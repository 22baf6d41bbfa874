// Losses that are made with a product. All are means over rows (positions), as f32 scalars; that of logits is in composite_ops.td.
#ifndef FT_LOSS_OPS
#define FT_LOSS_OPS

include "dialects/ft/op_base.td"

def Ft_LinearCrossEntropyOp : Ft_ComputeOp<"linear_cross_entropy", [Extents, Differentiable], ["getWorkspaceBytes"], ["getFlops", "getModelFlops"]> {
  let summary = "cross_entropy(x weight^T, targets), logits held for a chunk of rows at a time";
  let description = [{ x is [..., D], weight is [V, D]. }];
  let arguments = (ins Ft_FloatTensor:$x, Ft_FloatTensor:$weight, Ft_TokenTensor:$targets);
  let results = (outs Ft_Scalar:$loss);
  let assemblyFormat = "$x `,` $weight `,` $targets attr-dict `:` functional-type(operands, results)";
}

def Ft_LinearCrossEntropyGradOp
    : Ft_ComputeOp<"linear_cross_entropy_grad", [Precision], ["getKernelOperands", "getWorkspaceBytes", "getTiedOperand", "takeAccumulator"], ["getFlops", "getModelFlops"]> {
  let summary = "Gradients of linear_cross_entropy, the logits computed again by chunks";
  let arguments = (ins Ft_Scalar:$dloss, Ft_FloatTensor:$x, Ft_FloatTensor:$weight, Ft_TokenTensor:$targets, Optional<Ft_FloatTensor>:$acc);
  let results = (outs Ft_FloatTensor:$dx, Ft_FloatTensor:$dweight);
  let assemblyFormat = "$dloss `,` $x `,` $weight `,` $targets (`into` $acc^)? attr-dict `:` functional-type(operands, results)";
}

def Ft_LinearCrossEntropyLossGradOp
    : Ft_ComputeOp<"linear_cross_entropy_loss_grad", [Precision, FusedWithGradient, AttrSizedOperandSegments], ["getWorkspaceBytes", "getTiedOperand", "takeAccumulator"],
                   ["getFlops", "getModelFlops"]> {
  let summary = "Loss and gradients of linear_cross_entropy in one pass over the logits; the upstream gradient is dloss, times dloss_scale";
  let arguments = (ins Ft_FloatTensor:$x, Ft_FloatTensor:$weight, Ft_TokenTensor:$targets, Optional<Ft_FloatTensor>:$acc,
                       Optional<Ft_Scalar>:$dloss_scale, F64Attr:$dloss);
  let results = (outs Ft_Scalar:$loss, Ft_FloatTensor:$dx, Ft_FloatTensor:$dweight);
  let assemblyFormat = "$x `,` $weight `,` $targets (`into` $acc^)? `dloss` custom<Real>($dloss) (`times` $dloss_scale^)? attr-dict `:` functional-type(operands, results)";
}

#endif // FT_LOSS_OPS
