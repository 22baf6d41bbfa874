// What models are made of, and the gradients of these.
#ifndef FT_COMPUTE_OPS
#define FT_COMPUTE_OPS

include "dialects/ft/op_base.td"

def Ft_FillOp : Ft_Op<"fill", [ExtentsOfResult, Pure, Precision, DeclareOpInterfaceMethods<CostOpInterface>, DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "A tensor with one value everywhere";
  let arguments = (ins F64Attr:$value);
  let results = (outs Ft_FloatTensor:$result);
  let assemblyFormat = "custom<Real>($value) attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Ft_IotaOp : Ft_ComputeOp<"iota", [ExtentsOfResult, CheapToRecompute], [], []> {
  let summary = "0, 1, 2, ...: ids of consecutive rows, such as positions";
  let results = (outs Ft_TokenTensor:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def Ft_CopyOp : Ft_ComputeOp<"copy", [ExtentsOfResult, Differentiable, Precision], ["getKernelName"], []> {
  let summary = "The same values in a buffer of their own, rounded to its element type";
  let arguments = (ins Ft_Tensor:$x);
  let results = (outs Ft_Tensor:$result);
  let assemblyFormat = "$x attr-dict `:` custom<Rounding>(type($x), type($result))";
}

def Ft_EmbeddingOp : Ft_ComputeOp<"embedding", [Extents, Differentiable, CheapToRecompute]> {
  let summary = "Rows of a table: result[..., :] = table[ids[...], :]";
  let arguments = (ins Ft_TokenTensor:$ids, Ft_FloatTensor:$table);
  let results = (outs Ft_FloatTensor:$result);
  let assemblyFormat = "$ids `,` $table attr-dict `:` functional-type(operands, results)";
}

def Ft_EmbeddingGradOp : Ft_ComputeOp<"embedding_grad", [Precision], ["getKernelOperands", "getWorkspaceBytes", "getTiedOperand", "takeAccumulator"], ["getFlops", "getBytes"]> {
  let summary = "Gradient of an embedding's table: acc (or 0) + rows of dy added at ids, in order of position";
  let arguments = (ins Ft_TokenTensor:$ids, Ft_FloatTensor:$dy, Optional<Ft_FloatTensor>:$acc);
  let results = (outs Ft_FloatTensor:$dtable);
  let assemblyFormat = "$ids `,` $dy (`into` $acc^)? attr-dict `:` functional-type(operands, results)";
}

def Ft_MatmulOp : Ft_ComputeOp<"matmul", [Extents, Differentiable, Precision, AttrSizedOperandSegments], ["getWorkspaceBytes", "getTiedOperand", "takeAccumulator", "getOptionalAttributes"], ["getFlops", "getModelFlops", "getBytes"]> {
  let summary = "Matrix product over flattened leading dimensions, plus a bias per column";
  let description = [{
    Without `transpose_a`: a is [..., K], its leading dimensions are rows; b is [K, N], or [N, K] with `transpose_b`; the result is
    [..., N]. With `transpose_a` (weight gradients): a is [..., M] and b is [..., N] with the same leading dimensions,
    which are summed over; the result is [M, N]. `bias` is [N]. `acc` has the type of the result, which is acc + a b.

    `a_format` and `b_format`, e4m3 or e5m2, round the elements of a and b, which are bf16, to floats of 8 bits before they are multiplied
    (runtime/base/float8.h). Elements share a scale, a power of two, by `scaling`: `tensorwise`, all of an operand; `blockwise`, 128 that are
    summed over, of b without `transpose_a` 128 x 128. --ft-round-products says which products do; not what is `precise`, nor its gradients.
  }];
  let arguments = (ins Ft_FloatTensor:$a, Ft_FloatTensor:$b, Optional<Ft_FloatTensor>:$bias, Optional<Ft_FloatTensor>:$acc,
                       UnitAttr:$transpose_a, UnitAttr:$transpose_b, OptionalAttr<StrAttr>:$a_format, OptionalAttr<StrAttr>:$b_format,
                       OptionalAttr<StrAttr>:$scaling, UnitAttr:$precise);
  let results = (outs Ft_FloatTensor:$result);
  let assemblyFormat = [{
    $a `,` $b (`bias` $bias^)? (`into` $acc^)? (`transpose_a` $transpose_a^)? (`transpose_b` $transpose_b^)? attr-dict `:` functional-type(operands, results)
  }];
  // Of operands that are multiplied as they are.
  let builders = [OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$a, "::mlir::Value":$b, "::mlir::Value":$bias, "::mlir::Value":$acc,
                                 "bool":$transpose_a, "bool":$transpose_b), [{
    build($_builder, $_state, result, a, b, bias, acc, transpose_a, transpose_b, ::mlir::StringAttr(), ::mlir::StringAttr(), ::mlir::StringAttr(), false);
  }]>];
  let extraClassDeclaration = [{
    // [m, k] times [k, n].
    struct Extents {
      int64_t m, n, k;
    };
    Extents extents();
    bool roundsToFloat8() { return getScaling().has_value(); }
  }];
}

// A product and the GELU of it, or the gradient of a GELU that takes it, in the tanh form: --ft-fuse-gelu makes them after
// differentiation. `body` is what comes after the product, which is rounded as ft.matmul rounds it, so the bits are those of the two ops;
// a GPU's library, where it has both in one kernel, may leave that rounding out where algorithms are chosen by timing. It is a composite, and
// from stage schedule on a cluster.
class Ft_MatmulThenOp<string mnemonic, list<Trait> traits, list<string> kernelMethods = []>
    : Ft_ComputeOp<mnemonic, !listconcat([OfMlp, DeclareOpInterfaceMethods<SymbolUserOpInterface>], traits),
                   !listconcat(["getWorkspaceBytes"], kernelMethods), ["getFlops", "getModelFlops"]>;

def Ft_MatmulGeluOp : Ft_MatmulThenOp<"matmul_gelu", [], ["getKernelOperands"]> {
  let summary = "GELU of a matmul and, for backward, the matmul's own result, in one pass";
  let description = [{
    a is [..., K], b [K, N], or [N, K] with `transpose_b`; x = a b + bias, which is there when somebody else reads it, and the result, its
    GELU by `body`, are [..., N].
  }];
  let arguments = (ins Ft_FloatTensor:$a, Ft_FloatTensor:$b, Optional<Ft_FloatTensor>:$bias, UnitAttr:$transpose_b, FlatSymbolRefAttr:$body);
  let results = (outs Ft_FloatTensor:$result, Optional<Ft_FloatTensor>:$x);
  let assemblyFormat = [{
    $a `,` $b (`bias` $bias^)? (`transpose_b` $transpose_b^)? `then` $body attr-dict `:` functional-type(operands, results)
  }];
}

def Ft_MatmulGeluGradOp : Ft_MatmulThenOp<"matmul_gelu_grad", [AllTypesMatch<["x", "dx"]>]> {
  let summary = "Gradient of gelu at x, of which a matmul is the upstream gradient, in one pass";
  let description = [{
    a is [..., K], b [K, N], or [N, K] with `transpose_b`; dx = GELU'(x) (a b), by `body` of x and the product, is [..., N].
  }];
  let arguments = (ins Ft_FloatTensor:$a, Ft_FloatTensor:$b, Ft_FloatTensor:$x, UnitAttr:$transpose_b, FlatSymbolRefAttr:$body);
  let results = (outs Ft_FloatTensor:$dx);
  let assemblyFormat = [{
    $a `,` $b `at` $x (`transpose_b` $transpose_b^)? `then` $body attr-dict `:` type($a) `,` type($b) `,` type($x)
  }];
}

def Ft_MatmulBiasGradOp
    : Ft_ComputeOp<"matmul_bias_grad", [DeclareOpInterfaceMethods<SymbolUserOpInterface>], ["getWorkspaceBytes"], ["getFlops", "getModelFlops"]> {
  let summary = "Gradients of a weight and of its bias: a matmul with transpose_a, and the sum of one of its operands over the rows";
  let description = [{
    a is [..., M], b [..., N], of the same rows; the result is [M, N], `sums` [N], or [M] of a with `of_a`: --ft-fuse-bias-grad makes it, when clusters
    have been formed. `body` is the cluster of the sum, and `partial_bytes` its scratch, as of ft.cluster; so the bits are those of the two ops. A GPU's
    library, where it sums what it reads for the product, may add in another order where algorithms are chosen by timing.
  }];
  let arguments = (ins Ft_FloatTensor:$a, Ft_FloatTensor:$b, UnitAttr:$transpose_a, UnitAttr:$of_a, FlatSymbolRefAttr:$body,
                       DenseI64ArrayAttr:$partial_bytes);
  let results = (outs Ft_FloatTensor:$result, Ft_FloatTensor:$sums);
  let assemblyFormat = [{
    $a `,` $b (`transpose_a` $transpose_a^)? `beside` $body (`of_a` $of_a^)? `partial_bytes` $partial_bytes attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    // What is summed over its rows.
    ::mlir::Value getSummed() { return getOfA() ? getA() : getB(); }
  }];
}

def Ft_RotaryTableOp : Ft_ComputeOp<"rotary_table", [ExtentsOfResult, Precision, AllTypesMatch<["cosine", "sine"]>], ["getOptionalAttributes"]> {
  let summary = "Cosines and sines of rotary positions: of position * base^(-i / h), or of position * frequencies[i]; times scale";
  let description = [{
    [T, h], h half of the elements of a head that are rotated. Either `base` is given or `frequencies`, h of them, of a rope that is scaled
    for longer contexts; `scale` is 1 where it is absent. Angles are in f64 and results in f32, whatever the precision, so high positions
    are exact.
  }];
  let arguments = (ins OptionalAttr<F64Attr>:$base, OptionalAttr<DenseF64ArrayAttr>:$frequencies, OptionalAttr<F64Attr>:$scale);
  let results = (outs Ft_FloatTensor:$cosine, Ft_FloatTensor:$sine);
  let assemblyFormat = [{
    (`base` custom<Real>($base)^)? (`frequencies` $frequencies^)? (`scale` custom<Real>($scale)^)? attr-dict `:` type($cosine)
  }];
}

// Attention and its gradients; `operandFormat` is how operands are written. What is said of keys, scores and probabilities is optional and,
// where it is absent, no attribute of the kernel.
class Ft_AnyAttentionOp<string mnemonic, list<Trait> traits, dag operands, dag outs, string operandFormat>
    : Ft_ComputeOp<mnemonic, !listconcat([AttrSizedOperandSegments, RandomDropout], traits), ["getWorkspaceBytes", "getOptionalAttributes"],
                   ["getFlops", "getModelFlops"]> {
  let arguments = !con(operands, (ins Optional<Ft_TokenTensor>:$lengths, Optional<Ft_TokenTensor>:$segments, Optional<Ft_Tensor>:$rng,
                                  I64Attr:$heads, I64Attr:$kv_heads, UnitAttr:$causal, OptionalAttr<I64Attr>:$window,
                                  OptionalAttr<F64Attr>:$scale, OptionalAttr<F64Attr>:$softcap, UnitAttr:$alibi,
                                  OptionalAttr<F64Attr>:$rate, OptionalAttr<I64Attr>:$stream));
  let results = outs;
  let assemblyFormat = operandFormat # " (`lengths` $lengths^)? (`segments` $segments^)? (`dropout` $rate^ `rng` $rng `stream` $stream)?"
                       " `heads` $heads `kv_heads` $kv_heads (`causal` $causal^)? (`window` $window^)? (`scale` $scale^)?"
                       " (`softcap` $softcap^)? (`alibi` $alibi^)? attr-dict `:` functional-type(operands, results)";
}

def Ft_AttentionOp : Ft_AnyAttentionOp<"attention", [Extents, Differentiable, Precision, OfAttention],
    (ins Ft_FloatTensor:$q, Ft_FloatTensor:$k, Ft_FloatTensor:$v), (outs Ft_FloatTensor:$out, Ft_FloatTensor:$lse), "$q `,` $k `,` $v"> {
  let summary = "softmax(scores) v per head; the scores, by default q k^T / sqrt(head size), are never held whole";
  let description = [{
    q is [B, T, heads * S], k and v are [B, T, kv_heads * S]; head h uses kv head h / (heads / kv_heads). `lse` is [B, heads, T]: the log of the
    sum of exponentials of the scores, for the gradient. The score of position i (query) and position j (key) is s = `scale` q_i . k_j, then with
    `softcap` c it is c tanh(s / c), then with `alibi` slope * (j - i) is added; all of these, and what follows, multiply freely.

    - `causal`: i sees j <= i only.
    - `window` w: i sees the keys with |i - j| < w only; with `causal` those are the w positions that end with i, as `sliding_window` of
      transformers has it.
    - `lengths` [B]: in example b the keys j < lengths[b] count only, as with a padding mask of PyTorch's; what is below 0 or above T is 0 or T. A query
      behind them is computed as any other: what its row is worth is for the loss to say (negative targets count in none).
    - `segments` [B, T]: of any i32; i sees j in its own segment only, the positions around i with one and the same id. So documents that are packed
      into one sequence do not see each other. Ids that come again behind others are another segment. Positions are counted on (`alibi`, `ft.rope`):
      a model whose positions begin anew with each document takes them as an input.
    - `scale`: positive; 1 / sqrt(S) where it is absent.
    - `softcap`: positive, as `attn_logit_softcapping` of Gemma 2.
    - `alibi`: the slopes are BLOOM's. For n heads, n a power of two, that of head h is 2^(-8 (h + 1) / n); otherwise the first m heads have those of
      the greatest power of two m below n, and head m + k has 2^(-4 (2 k + 1) / m).
    - `dropout` p: of the probabilities, each is 0 with probability p, the others are divided by 1 - p. Element ((b heads + h) T + i) T + j is drawn as
      ft.dropout draws it, from `rng` and `stream`, and again in backward. Evaluation has none.

    A query that sees no key has out 0, lse 0 and no gradient. Tiles of keys that no query sees cost nothing. FLOPs count what `causal` and `window`
    leave: an upper bound with `lengths` and `segments`, which are known with the data only.
  }];
}

def Ft_AttentionGradOp : Ft_AnyAttentionOp<"attention_grad", [],
    (ins Ft_FloatTensor:$dout, Ft_FloatTensor:$q, Ft_FloatTensor:$k, Ft_FloatTensor:$v, Ft_FloatTensor:$out, Ft_FloatTensor:$lse),
    (outs Ft_FloatTensor:$dq, Ft_FloatTensor:$dk, Ft_FloatTensor:$dv), "$dout `,` $q `,` $k `,` $v `,` $out `,` $lse"> {
  let summary = "Gradients of attention; the probabilities are computed again by tiles";
}

def Ft_QkvAttentionOp : Ft_AnyAttentionOp<"qkv_attention", [Extents, Differentiable, Precision, OfAttention],
    (ins Ft_FloatTensor:$qkv), (outs Ft_FloatTensor:$out, Ft_FloatTensor:$lse), "$qkv"> {
  let summary = "attention of q, k and v that lie side by side in one tensor";
  let description = [{
    qkv is [B, T, (heads + 2 kv_heads) * S], as one projection writes it: q, then k, then v of each position. The bits are those of ft.split and
    ft.attention, for which --ft-fuse-qkv-attention puts it.
  }];
}

def Ft_QkvAttentionGradOp : Ft_AnyAttentionOp<"qkv_attention_grad", [],
    (ins Ft_FloatTensor:$dout, Ft_FloatTensor:$qkv, Ft_FloatTensor:$out, Ft_FloatTensor:$lse), (outs Ft_FloatTensor:$dqkv),
    "$dout `,` $qkv `,` $out `,` $lse"> {
  let summary = "Gradient of qkv_attention: dq, dk and dv side by side";
}

def Ft_SplitOp : Ft_ComputeOp<"split", [Extents, Differentiable, MovesElements], [], []> {
  let summary = "Cuts the last dimension into consecutive parts";
  let arguments = (ins Ft_FloatTensor:$x);
  let results = (outs Variadic<Ft_FloatTensor>:$parts);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($parts)";
}

def Ft_ConcatOp : Ft_ComputeOp<"concat", [Extents, Differentiable, MovesElements], [], []> {
  let summary = "Joins along a dimension; -1 is the last";
  let arguments = (ins Variadic<Ft_Tensor>:$parts, DefaultValuedAttr<I64Attr, "-1">:$axis);
  let results = (outs Ft_Tensor:$result);
  let assemblyFormat = "$parts (`axis` $axis^)? attr-dict `:` type($parts) `->` type($result)";
}

#endif // FT_COMPUTE_OPS
