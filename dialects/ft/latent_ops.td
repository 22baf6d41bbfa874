// What the Free Transformer's latent variable (F. Fleuret, "The Free Transformer", 2025) is told by; the rest of it is composites.
#ifndef FT_LATENT_OPS
#define FT_LATENT_OPS

include "dialects/ft/op_base.td"

def Ft_BinaryMapperOp : Ft_ComputeOp<"binary_mapper", [Extents, Differentiable]> {
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

#endif // FT_LATENT_OPS
