// The Free Transformer's latent variable (F. Fleuret, "The Free Transformer", 2025).
#ifndef FT_LATENT_OPS
#define FT_LATENT_OPS

include "dialects/ft/op_base.td"

def Ft_SampleBitsOp : Ft_ComputeOp<"sample_bits", [Random]> {
  let summary = "Index d = sum_h b_h 2^h with b_h ~ Bernoulli(sigmoid(logits[..., h]))";
  let description = [{
    b_h is 1 when u < sigmoid(logit), u uniform from Philox with stream `stream` at step rng[1], element
    ((rng[2] * positions + t) * H + h), t the flat position. rng is seed, step, rank.
  }];
  let arguments = (ins Ft_FloatTensor:$logits, Ft_Tensor:$rng, I64Attr:$stream);
  let results = (outs Ft_TokenTensor:$index);
  let assemblyFormat = "$logits `,` $rng `stream` $stream attr-dict `:` functional-type(operands, results)";
}

def Ft_BinaryMapperOp : Ft_ComputeOp<"binary_mapper", [Differentiable]> {
  let summary = "R = table[index]: the one-hot of the sampled bits times the table, differentiable in the logits";
  let description = [{
    logits [..., H], index [...], table [2^H, D] -> [..., D]. The gradient of the logits is the straight-through one: with g_d = dR . table[d] and
    G_d = prod_h sigmoid(l_h)^(u_h(d)) (1 - sigmoid(l_h))^(1 - u_h(d)): dl_h = sum_d g_d G_d (u_h(d) - sigmoid(l_h)).
  }];
  let arguments = (ins Ft_FloatTensor:$logits, Ft_TokenTensor:$index, Ft_FloatTensor:$table);
  let results = (outs Ft_FloatTensor:$result);
  let assemblyFormat = "$logits `,` $index `,` $table attr-dict `:` functional-type(operands, results)";
}

def Ft_BinaryMapperGradOp : Ft_ComputeOp<"binary_mapper_grad", [AllTypesMatch<["logits", "dlogits"]>], ["getWorkspaceBytes"], ["getFlops", "getModelFlops"]> {
  let summary = "Straight-through gradient of binary_mapper's logits, by blocks of codes";
  let arguments = (ins Ft_FloatTensor:$dy, Ft_FloatTensor:$logits, Ft_FloatTensor:$table);
  let results = (outs Ft_FloatTensor:$dlogits);
  let assemblyFormat = "$dy `,` $logits `,` $table attr-dict `:` functional-type(operands, results)";
}

def Ft_BitsKlOp : Ft_ComputeOp<"bits_kl", [Differentiable], ["getWorkspaceBytes"]> {
  let summary = "Mean over positions of max(0, KL_t - kappa), KL_t = H ln 2 - sum_h entropy(sigmoid(l_h)), in nats";
  let arguments = (ins Ft_FloatTensor:$logits, F64Attr:$kappa);
  let results = (outs Ft_Scalar:$kl);
  let assemblyFormat = "$logits `kappa` custom<Real>($kappa) attr-dict `:` functional-type(operands, results)";
}

def Ft_BitsKlGradOp : Ft_ComputeOp<"bits_kl_grad", [AllTypesMatch<["logits", "dlogits"]>]> {
  let summary = "Gradient of bits_kl: 0 where KL_t <= kappa, else dkl / positions * l_h s_h (1 - s_h), s = sigmoid(l)";
  let arguments = (ins Ft_Scalar:$dkl, Ft_FloatTensor:$logits, F64Attr:$kappa);
  let results = (outs Ft_FloatTensor:$dlogits);
  let assemblyFormat = "$dkl `,` $logits `kappa` custom<Real>($kappa) attr-dict `:` functional-type(operands, results)";
}

#endif // FT_LATENT_OPS
