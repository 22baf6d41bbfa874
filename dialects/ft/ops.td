// The only list of ops of the graph level. Every op that computes has a derivative (or is itself one), a cost, a kernel.
#ifndef FT_OPS
#define FT_OPS

include "mlir/IR/OpBase.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "dialects/ft/dialect.td"
include "dialects/ft/interfaces.td"

//===----------------------------------------------------------------------===//
// Parameters and inputs
//===----------------------------------------------------------------------===//

class Ft_Op<string mnemonic, list<Trait> traits = []> : Op<Ft_Dialect, mnemonic, traits>;

// Some results have another element type than the activations.
def Precision : DeclareOpInterfaceMethods<PrecisionOpInterface>;

def Ft_ParameterOp : Ft_Op<"parameter", [Symbol]> {
  let summary = "A parameter of the model";
  let description = [{
    `ft.parameter @"transformer.wte.weight" : tensor<50257x768xf32> = #ft.init<normal, 0.02>`

    `layer` groups parameters for wrap policies; `aliases` are further names under which a checkpoint may hold it (tied weights);
    `unit` and `offset` (in elements, inside the unit's flat buffer) are set when units are formed.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<Ft_FloatTensor>:$type, Ft_InitAttr:$init,
                       OptionalAttr<StrAttr>:$layer, UnitAttr:$no_decay, UnitAttr:$frozen, OptionalAttr<StrArrayAttr>:$aliases,
                       OptionalAttr<FlatSymbolRefAttr>:$unit, OptionalAttr<I64Attr>:$offset);
  let assemblyFormat = "$sym_name `:` $type `=` qualified($init) attr-dict";
  let hasVerifier = 1;
}

def Ft_UnitOp : Ft_Op<"unit", [Symbol]> {
  let summary = "Parameters that are gathered together, in one flat buffer";
  let description = [{ `elements`: end of the last parameter, rounded up to a block of 1024. }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$elements);
  let assemblyFormat = "$sym_name attr-dict";
  let hasVerifier = 1;
}

def Ft_GetOp : Ft_Op<"get", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>,
                             DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "The value of a parameter";
  let arguments = (ins FlatSymbolRefAttr:$parameter);
  let results = (outs Ft_FloatTensor:$value);
  let assemblyFormat = "$parameter attr-dict `:` type($value)";
}

def Ft_InputOp : Ft_Op<"input", [Pure, Precision, DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "A value that the executor provides each step";
  let description = [{
    `rng`: tensor<3xi64> = seed, micro-step, rank. `lr`: tensor<f32>. `step`: tensor<i64>, the optimizer steps applied so far.
    `scaler`: tensor<3xf32>, the state of dynamic loss scaling, which ft.update_scaler changes.
  }];
  let arguments = (ins StrAttr:$name);
  let results = (outs Ft_Tensor:$value);
  let assemblyFormat = "$name attr-dict `:` type($value)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Compute ops. Ft_ComputeOp: pure, costed, one kernel.
//===----------------------------------------------------------------------===//

class Ft_ComputeOp<string mnemonic, list<Trait> traits = [], list<string> kernelMethods = [], list<string> costMethods = ["getFlops"]>
    : Ft_Op<mnemonic, !listconcat([Pure, DeclareOpInterfaceMethods<CostOpInterface, costMethods>,
                                   DeclareOpInterfaceMethods<KernelOpInterface, kernelMethods>], traits)> {
  let hasVerifier = 1;
}

// Few FLOPs for the bytes of its result: computing it again costs less than keeping it.
def CheapToRecompute : NativeOpTrait<"CheapToRecompute"> { let cppNamespace = "::mlir::ft"; }

// Computes part of the gradient along with its results, so it runs once.
def FusedWithGradient : NativeOpTrait<"FusedWithGradient"> { let cppNamespace = "::mlir::ft"; }

// Classes of ops for recomputation (--remat=ops:CLASS).
def OfAttention : NativeOpTrait<"OfAttention"> { let cppNamespace = "::mlir::ft"; }
def OfMlp : NativeOpTrait<"OfMlp"> { let cppNamespace = "::mlir::ft"; }
def OfNorms : NativeOpTrait<"OfNorms"> { let cppNamespace = "::mlir::ft"; }

def Differentiable : DeclareOpInterfaceMethods<DifferentiableOpInterface>;

def Ft_FillOp : Ft_Op<"fill", [Pure, Precision, DeclareOpInterfaceMethods<CostOpInterface>, DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "A tensor with one value everywhere";
  let arguments = (ins F64Attr:$value);
  let results = (outs Ft_FloatTensor:$result);
  let assemblyFormat = "custom<Real>($value) attr-dict `:` type($result)";
}

def Ft_IotaOp : Ft_ComputeOp<"iota", [CheapToRecompute], [], []> {
  let summary = "0, 1, 2, ...: ids of consecutive rows, such as positions";
  let results = (outs Ft_TokenTensor:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def Ft_CopyOp : Ft_ComputeOp<"copy", [Differentiable, Precision], ["getKernelName"], []> {
  let summary = "The same values in a buffer of their own, rounded to its element type";
  let arguments = (ins Ft_Tensor:$x);
  let results = (outs Ft_Tensor:$result);
  let assemblyFormat = "$x attr-dict `:` custom<Rounding>(type($x), type($result))";
}

def Ft_EmbeddingOp : Ft_ComputeOp<"embedding", [Differentiable, CheapToRecompute]> {
  let summary = "Rows of a table: result[..., :] = table[ids[...], :]";
  let arguments = (ins Ft_TokenTensor:$ids, Ft_FloatTensor:$table);
  let results = (outs Ft_FloatTensor:$result);
  let assemblyFormat = "$ids `,` $table attr-dict `:` functional-type(operands, results)";
}

def Ft_EmbeddingGradOp : Ft_ComputeOp<"embedding_grad", [Precision], ["getWorkspaceBytes", "getTiedOperand"]> {
  let summary = "Gradient of an embedding's table: acc (or 0) + rows of dy added at ids, in order of position";
  let arguments = (ins Ft_TokenTensor:$ids, Ft_FloatTensor:$dy, Optional<Ft_FloatTensor>:$acc);
  let results = (outs Ft_FloatTensor:$dtable);
  let assemblyFormat = "$ids `,` $dy (`into` $acc^)? attr-dict `:` functional-type(operands, results)";
}

def Ft_LayerNormOp : Ft_ComputeOp<"layer_norm", [Differentiable, CheapToRecompute, OfNorms, AllTypesMatch<["x", "result"]>]> {
  let summary = "(x - mean) / sqrt(var + eps) * weight + bias over the last dimension";
  let arguments = (ins Ft_FloatTensor:$x, Ft_FloatTensor:$weight, Ft_FloatTensor:$bias, F64Attr:$eps);
  let results = (outs Ft_FloatTensor:$result);
  let assemblyFormat = "$x `,` $weight `,` $bias `eps` custom<Real>($eps) attr-dict `:` type($x) `,` type($weight) `,` type($bias)";
}

def Ft_LayerNormGradOp : Ft_ComputeOp<"layer_norm_grad", [Precision], ["getWorkspaceBytes"]> {
  let summary = "Gradients of layer_norm; the statistics are computed again from x";
  let arguments = (ins Ft_FloatTensor:$dy, Ft_FloatTensor:$x, Ft_FloatTensor:$weight, F64Attr:$eps);
  let results = (outs Ft_FloatTensor:$dx, Ft_FloatTensor:$dweight, Ft_FloatTensor:$dbias);
  let assemblyFormat = "$dy `,` $x `,` $weight `eps` custom<Real>($eps) attr-dict `:` functional-type(operands, results)";
}

def Ft_RmsNormOp : Ft_ComputeOp<"rms_norm", [Differentiable, CheapToRecompute, OfNorms, AllTypesMatch<["x", "result"]>]> {
  let summary = "x / sqrt(mean(x^2) + eps) * weight over the last dimension";
  let arguments = (ins Ft_FloatTensor:$x, Ft_FloatTensor:$weight, F64Attr:$eps);
  let results = (outs Ft_FloatTensor:$result);
  let assemblyFormat = "$x `,` $weight `eps` custom<Real>($eps) attr-dict `:` type($x) `,` type($weight)";
}

def Ft_RmsNormGradOp : Ft_ComputeOp<"rms_norm_grad", [Precision], ["getWorkspaceBytes"]> {
  let summary = "Gradients of rms_norm; the statistic is computed again from x";
  let arguments = (ins Ft_FloatTensor:$dy, Ft_FloatTensor:$x, Ft_FloatTensor:$weight, F64Attr:$eps);
  let results = (outs Ft_FloatTensor:$dx, Ft_FloatTensor:$dweight);
  let assemblyFormat = "$dy `,` $x `,` $weight `eps` custom<Real>($eps) attr-dict `:` functional-type(operands, results)";
}

// The norms with the residual sum before them: --ft-fuse-residual-norm makes them after differentiation. `sum` is rounded as ft.add
// rounds it and the norm is of the rounded sum, so the bits are those of the two ops. A kernel reads all of a row before it writes.
class Ft_ResidualNormOp<string mnemonic>
    : Ft_ComputeOp<mnemonic, [CheapToRecompute, OfNorms, AllTypesMatch<["a", "b", "sum", "result"]>], ["getReusableOperand"]> {
  let results = (outs Ft_FloatTensor:$sum, Ft_FloatTensor:$result);
}

def Ft_AddLayerNormOp : Ft_ResidualNormOp<"add_layer_norm"> {
  let summary = "sum = a + b and its layer_norm, in one pass";
  let arguments = (ins Ft_FloatTensor:$a, Ft_FloatTensor:$b, Ft_FloatTensor:$weight, Ft_FloatTensor:$bias, F64Attr:$eps);
  let assemblyFormat = "$a `,` $b `,` $weight `,` $bias `eps` custom<Real>($eps) attr-dict `:` type($a) `,` type($weight) `,` type($bias)";
}

def Ft_AddRmsNormOp : Ft_ResidualNormOp<"add_rms_norm"> {
  let summary = "sum = a + b and its rms_norm, in one pass";
  let arguments = (ins Ft_FloatTensor:$a, Ft_FloatTensor:$b, Ft_FloatTensor:$weight, F64Attr:$eps);
  let assemblyFormat = "$a `,` $b `,` $weight `eps` custom<Real>($eps) attr-dict `:` type($a) `,` type($weight)";
}

def Ft_MatmulOp : Ft_ComputeOp<"matmul", [Differentiable, Precision, AttrSizedOperandSegments], ["getWorkspaceBytes", "getTiedOperand"], ["getFlops", "getModelFlops"]> {
  let summary = "Matrix product over flattened leading dimensions, plus a bias per column";
  let description = [{
    Without `transpose_a`: a is [..., K], its leading dimensions are rows; b is [K, N], or [N, K] with `transpose_b`; the result is
    [..., N]. With `transpose_a` (weight gradients): a is [..., M] and b is [..., N] with the same leading dimensions,
    which are summed over; the result is [M, N]. `bias` is [N]. `acc` has the type of the result, which is acc + a b.
  }];
  let arguments = (ins Ft_FloatTensor:$a, Ft_FloatTensor:$b, Optional<Ft_FloatTensor>:$bias, Optional<Ft_FloatTensor>:$acc,
                       UnitAttr:$transpose_a, UnitAttr:$transpose_b);
  let results = (outs Ft_FloatTensor:$result);
  let assemblyFormat = [{
    $a `,` $b (`bias` $bias^)? (`into` $acc^)? (`transpose_a` $transpose_a^)? (`transpose_b` $transpose_b^)? attr-dict `:` functional-type(operands, results)
  }];
}

def Ft_SumLeadingOp : Ft_ComputeOp<"sum_leading", [Precision], ["getWorkspaceBytes"]> {
  let summary = "Sum over leading dimensions: the result's shape is a suffix of x's";
  let arguments = (ins Ft_FloatTensor:$x);
  let results = (outs Ft_FloatTensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($result)";
  let hasFolder = 1;
}

def Ft_BroadcastOp : Ft_ComputeOp<"broadcast", [Differentiable, CheapToRecompute]> {
  let summary = "Repeats x over new leading dimensions";
  let arguments = (ins Ft_FloatTensor:$x);
  let results = (outs Ft_FloatTensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($result)";
  let hasFolder = 1;
}

def Ft_AddOp : Ft_ComputeOp<"add", [Differentiable, Precision, CheapToRecompute, AllTypesMatch<["a", "result"]>], ["getReusableOperand"]> {
  let summary = "Sum a + b; b's shape is a's or a suffix of it";
  let arguments = (ins Ft_FloatTensor:$a, Ft_FloatTensor:$b);
  let results = (outs Ft_FloatTensor:$result);
  let assemblyFormat = "$a `,` $b attr-dict `:` type($a) `,` type($b)";
  let hasFolder = 1;
}

def Ft_MulOp : Ft_ComputeOp<"mul", [Differentiable, CheapToRecompute, AllTypesMatch<["a", "result"]>], ["getReusableOperand"]> {
  let summary = "Product a * b, element by element; b's shape is a's or a suffix of it";
  let arguments = (ins Ft_FloatTensor:$a, Ft_FloatTensor:$b);
  let results = (outs Ft_FloatTensor:$result);
  let assemblyFormat = "$a `,` $b attr-dict `:` type($a) `,` type($b)";
}

def Ft_ScaleOp : Ft_ComputeOp<"scale", [Differentiable, Precision, CheapToRecompute, AllTypesMatch<["x", "result"]>], ["getReusableOperand"]> {
  let summary = "x * factor";
  let arguments = (ins Ft_FloatTensor:$x, F64Attr:$factor);
  let results = (outs Ft_FloatTensor:$result);
  let assemblyFormat = "$x `,` custom<Real>($factor) attr-dict `:` type($x)";
  let hasVerifier = 0;
  let hasFolder = 1;
}

def Ft_GeluOp : Ft_ComputeOp<"gelu", [Differentiable, CheapToRecompute, OfMlp, AllTypesMatch<["x", "result"]>], ["getReusableOperand"]> {
  let summary = "GELU; approximate = \"tanh\" (GPT-2's gelu_new) or \"none\" (erf)";
  let arguments = (ins Ft_FloatTensor:$x, StrAttr:$approximate);
  let results = (outs Ft_FloatTensor:$result);
  let assemblyFormat = "$x `approximate` $approximate attr-dict `:` type($x)";
}

def Ft_GeluGradOp : Ft_ComputeOp<"gelu_grad", [AllTypesMatch<["dy", "x", "dx"]>], ["getReusableOperand"]> {
  let arguments = (ins Ft_FloatTensor:$dy, Ft_FloatTensor:$x, StrAttr:$approximate);
  let results = (outs Ft_FloatTensor:$dx);
  let summary = "Gradient of gelu";
  let assemblyFormat = "$dy `,` $x `approximate` $approximate attr-dict `:` type($x)";
}

// A product with the GELU of it, or with the gradient of a GELU that takes it, both in the tanh form: --ft-fuse-gelu makes them after
// differentiation. The product is rounded as ft.matmul rounds it, so the bits are those of the two ops; a GPU's kernel may leave that
// rounding out where algorithms are chosen by timing.
def Ft_MatmulGeluOp : Ft_ComputeOp<"matmul_gelu", [OfMlp], ["getWorkspaceBytes"], ["getFlops", "getModelFlops"]> {
  let summary = "GELU of a matmul and, for backward, the matmul's own result, in one pass";
  let description = [{
    a is [..., K], b [K, N], or [N, K] with `transpose_b`; x = a b + bias, which is there when somebody else reads it, and the result, its
    GELU, are [..., N].
  }];
  let arguments = (ins Ft_FloatTensor:$a, Ft_FloatTensor:$b, Optional<Ft_FloatTensor>:$bias, UnitAttr:$transpose_b);
  let results = (outs Ft_FloatTensor:$result, Optional<Ft_FloatTensor>:$x);
  let assemblyFormat = "$a `,` $b (`bias` $bias^)? (`transpose_b` $transpose_b^)? attr-dict `:` functional-type(operands, results)";
}

def Ft_MatmulGeluGradOp
    : Ft_ComputeOp<"matmul_gelu_grad", [OfMlp, AllTypesMatch<["x", "dx"]>], ["getWorkspaceBytes"], ["getFlops", "getModelFlops"]> {
  let summary = "Gradient of gelu at x, of which a matmul is the upstream gradient, in one pass";
  let description = [{
    a is [..., K], b [K, N], or [N, K] with `transpose_b`; dx = GELU'(x) (a b) is [..., N].
  }];
  let arguments = (ins Ft_FloatTensor:$a, Ft_FloatTensor:$b, Ft_FloatTensor:$x, UnitAttr:$transpose_b);
  let results = (outs Ft_FloatTensor:$dx);
  let assemblyFormat = "$a `,` $b `at` $x (`transpose_b` $transpose_b^)? attr-dict `:` type($a) `,` type($b) `,` type($x)";
}

def Ft_SwigluOp : Ft_ComputeOp<"swiglu", [Differentiable, CheapToRecompute, OfMlp, AllTypesMatch<["gate", "up", "result"]>], ["getReusableOperand"]> {
  let summary = "silu(gate) * up, silu(z) = z * sigmoid(z)";
  let arguments = (ins Ft_FloatTensor:$gate, Ft_FloatTensor:$up);
  let results = (outs Ft_FloatTensor:$result);
  let assemblyFormat = "$gate `,` $up attr-dict `:` type($gate)";
  let hasVerifier = 0;
}

def Ft_SwigluGradOp : Ft_ComputeOp<"swiglu_grad", [AllTypesMatch<["dy", "gate", "up", "dgate", "dup"]>], ["getReusableOperand"]> {
  let summary = "Gradients of swiglu";
  let arguments = (ins Ft_FloatTensor:$dy, Ft_FloatTensor:$gate, Ft_FloatTensor:$up);
  let results = (outs Ft_FloatTensor:$dgate, Ft_FloatTensor:$dup);
  let assemblyFormat = "$dy `,` $gate `,` $up attr-dict `:` type($gate)";
  let hasVerifier = 0;
}

def Ft_RopeOp : Ft_ComputeOp<"rope", [Differentiable, CheapToRecompute, AllTypesMatch<["x", "result"]>], ["getReusableOperand"]> {
  let summary = "Rotary position embedding, rotate-half form";
  let description = [{
    x is [B, T, heads * head size], position = index in T. With h = head size / 2, frequency_i = base^(-i / h): the pair
    (x_i, x_{i+h}) is rotated by position * frequency_i; `inverse` rotates back. Source: J. Su et al., RoFormer, 2021.
  }];
  let arguments = (ins Ft_FloatTensor:$x, I64Attr:$heads, F64Attr:$base, UnitAttr:$inverse);
  let results = (outs Ft_FloatTensor:$result);
  let assemblyFormat = "$x `heads` $heads `base` custom<Real>($base) (`inverse` $inverse^)? attr-dict `:` type($x)";
}

def Ft_DropoutOp : Ft_ComputeOp<"dropout", [Differentiable, CheapToRecompute, AllTypesMatch<["x", "result"]>], ["getReusableOperand"]> {
  let summary = "x with each element zeroed with probability rate, the others divided by 1 - rate";
  let description = [{
    Element i of rank r is kept when u >= rate, u uniform from Philox with stream `stream` at micro-step rng[1], element
    r * elements + i. Nothing is stored: the gradient draws the same numbers, and so does computing again.
  }];
  let arguments = (ins Ft_FloatTensor:$x, Ft_Tensor:$rng, F64Attr:$rate, I64Attr:$stream);
  let results = (outs Ft_FloatTensor:$result);
  let assemblyFormat = "$x `,` $rng `rate` custom<Real>($rate) `stream` $stream attr-dict `:` type($x) `,` type($rng)";
}

def Ft_AttentionOp : Ft_ComputeOp<"attention", [Differentiable, Precision, OfAttention], ["getWorkspaceBytes"], ["getFlops", "getModelFlops"]> {
  let summary = "softmax(q k^T / sqrt(head size)) v per head; the scores are never held whole";
  let description = [{
    q is [B, T, heads * S], k and v are [B, T, kv_heads * S]; head h uses kv head h / (heads / kv_heads). `causal`: position t sees positions
    up to t. `lse` is [B, heads, T]: the log of the sum of exponentials of the scaled scores, for the gradient.
  }];
  let arguments = (ins Ft_FloatTensor:$q, Ft_FloatTensor:$k, Ft_FloatTensor:$v, I64Attr:$heads, I64Attr:$kv_heads, UnitAttr:$causal);
  let results = (outs Ft_FloatTensor:$out, Ft_FloatTensor:$lse);
  let assemblyFormat = "$q `,` $k `,` $v `heads` $heads `kv_heads` $kv_heads (`causal` $causal^)? attr-dict `:` functional-type(operands, results)";
}

def Ft_AttentionGradOp : Ft_ComputeOp<"attention_grad", [], ["getWorkspaceBytes"], ["getFlops", "getModelFlops"]> {
  let summary = "Gradients of attention; the probabilities are computed again by tiles";
  let arguments = (ins Ft_FloatTensor:$dout, Ft_FloatTensor:$q, Ft_FloatTensor:$k, Ft_FloatTensor:$v, Ft_FloatTensor:$out, Ft_FloatTensor:$lse,
                       I64Attr:$heads, I64Attr:$kv_heads, UnitAttr:$causal);
  let results = (outs Ft_FloatTensor:$dq, Ft_FloatTensor:$dk, Ft_FloatTensor:$dv);
  let assemblyFormat = "$dout `,` $q `,` $k `,` $v `,` $out `,` $lse `heads` $heads `kv_heads` $kv_heads (`causal` $causal^)? attr-dict `:` functional-type(operands, results)";
}

def Ft_QkvAttentionOp : Ft_ComputeOp<"qkv_attention", [Differentiable, Precision, OfAttention], ["getWorkspaceBytes"], ["getFlops", "getModelFlops"]> {
  let summary = "attention of q, k and v that lie side by side in one tensor";
  let description = [{
    qkv is [B, T, (heads + 2 kv_heads) * S], as one projection writes it: q, then k, then v of each position. The bits are those of ft.split and
    ft.attention, for which --ft-fuse-qkv-attention puts it.
  }];
  let arguments = (ins Ft_FloatTensor:$qkv, I64Attr:$heads, I64Attr:$kv_heads, UnitAttr:$causal);
  let results = (outs Ft_FloatTensor:$out, Ft_FloatTensor:$lse);
  let assemblyFormat = "$qkv `heads` $heads `kv_heads` $kv_heads (`causal` $causal^)? attr-dict `:` functional-type(operands, results)";
}

def Ft_QkvAttentionGradOp : Ft_ComputeOp<"qkv_attention_grad", [], ["getWorkspaceBytes"], ["getFlops", "getModelFlops"]> {
  let summary = "Gradient of qkv_attention: dq, dk and dv side by side";
  let arguments = (ins Ft_FloatTensor:$dout, Ft_FloatTensor:$qkv, Ft_FloatTensor:$out, Ft_FloatTensor:$lse,
                       I64Attr:$heads, I64Attr:$kv_heads, UnitAttr:$causal);
  let results = (outs Ft_FloatTensor:$dqkv);
  let assemblyFormat = "$dout `,` $qkv `,` $out `,` $lse `heads` $heads `kv_heads` $kv_heads (`causal` $causal^)? attr-dict `:` functional-type(operands, results)";
}

def Ft_SplitOp : Ft_ComputeOp<"split", [Differentiable], [], []> {
  let summary = "Cuts the last dimension into consecutive parts";
  let arguments = (ins Ft_FloatTensor:$x);
  let results = (outs Variadic<Ft_FloatTensor>:$parts);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($parts)";
}

def Ft_ConcatOp : Ft_ComputeOp<"concat", [Differentiable], [], []> {
  let summary = "Joins along the last dimension";
  let arguments = (ins Variadic<Ft_FloatTensor>:$parts);
  let results = (outs Ft_FloatTensor:$result);
  let assemblyFormat = "$parts attr-dict `:` type($parts) `->` type($result)";
}

//===----------------------------------------------------------------------===//
// Losses. All are means over rows (positions), as f32 scalars.
//===----------------------------------------------------------------------===//

def Ft_CrossEntropyOp : Ft_ComputeOp<"cross_entropy", [Differentiable], ["getWorkspaceBytes"]> {
  let summary = "Mean over rows of logsumexp(logits) - logits[target]";
  let arguments = (ins Ft_FloatTensor:$logits, Ft_TokenTensor:$targets);
  let results = (outs Ft_Scalar:$loss);
  let assemblyFormat = "$logits `,` $targets attr-dict `:` functional-type(operands, results)";
}

def Ft_CrossEntropyGradOp : Ft_ComputeOp<"cross_entropy_grad", [AllTypesMatch<["logits", "dlogits"]>], ["getWorkspaceBytes", "getReusableOperand"]> {
  let summary = "dloss * (softmax(logits) - onehot(target)) / rows";
  let arguments = (ins Ft_Scalar:$dloss, Ft_FloatTensor:$logits, Ft_TokenTensor:$targets);
  let results = (outs Ft_FloatTensor:$dlogits);
  let assemblyFormat = "$dloss `,` $logits `,` $targets attr-dict `:` functional-type(operands, results)";
}

def Ft_LinearCrossEntropyOp : Ft_ComputeOp<"linear_cross_entropy", [Differentiable], ["getWorkspaceBytes"], ["getFlops", "getModelFlops"]> {
  let summary = "cross_entropy(x weight^T, targets), logits held for a chunk of rows at a time";
  let description = [{ x is [..., D], weight is [V, D]. }];
  let arguments = (ins Ft_FloatTensor:$x, Ft_FloatTensor:$weight, Ft_TokenTensor:$targets);
  let results = (outs Ft_Scalar:$loss);
  let assemblyFormat = "$x `,` $weight `,` $targets attr-dict `:` functional-type(operands, results)";
}

def Ft_LinearCrossEntropyGradOp
    : Ft_ComputeOp<"linear_cross_entropy_grad", [Precision], ["getWorkspaceBytes", "getTiedOperand"], ["getFlops", "getModelFlops"]> {
  let summary = "Gradients of linear_cross_entropy, the logits computed again by chunks";
  let arguments = (ins Ft_Scalar:$dloss, Ft_FloatTensor:$x, Ft_FloatTensor:$weight, Ft_TokenTensor:$targets, Optional<Ft_FloatTensor>:$acc);
  let results = (outs Ft_FloatTensor:$dx, Ft_FloatTensor:$dweight);
  let assemblyFormat = "$dloss `,` $x `,` $weight `,` $targets (`into` $acc^)? attr-dict `:` functional-type(operands, results)";
}

def Ft_LinearCrossEntropyLossGradOp
    : Ft_ComputeOp<"linear_cross_entropy_loss_grad", [Precision, FusedWithGradient, AttrSizedOperandSegments], ["getWorkspaceBytes", "getTiedOperand"],
                   ["getFlops", "getModelFlops"]> {
  let summary = "Loss and gradients of linear_cross_entropy in one pass over the logits; the upstream gradient is dloss, times dloss_scale";
  let arguments = (ins Ft_FloatTensor:$x, Ft_FloatTensor:$weight, Ft_TokenTensor:$targets, Optional<Ft_FloatTensor>:$acc,
                       Optional<Ft_Scalar>:$dloss_scale, F64Attr:$dloss);
  let results = (outs Ft_Scalar:$loss, Ft_FloatTensor:$dx, Ft_FloatTensor:$dweight);
  let assemblyFormat = "$x `,` $weight `,` $targets (`into` $acc^)? `dloss` custom<Real>($dloss) (`times` $dloss_scale^)? attr-dict `:` functional-type(operands, results)";
}

//===----------------------------------------------------------------------===//
// The Free Transformer's latent variable (F. Fleuret, "The Free Transformer", 2025)
//===----------------------------------------------------------------------===//

def Ft_SampleBitsOp : Ft_ComputeOp<"sample_bits"> {
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

//===----------------------------------------------------------------------===//
// Units, collectives, optimizer. These have identity or effects, so that neither CSE nor DCE touches them.
//===----------------------------------------------------------------------===//

// Reads of rank-local persistent state are modelled as effects on the default resource.
def Ft_ShardOp : Ft_Op<"shard", [MemoryEffects<[MemRead]>, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "What this rank holds of a unit's parameters at rest";
  let arguments = (ins FlatSymbolRefAttr:$unit);
  let results = (outs Ft_SliceType:$slice);
  let assemblyFormat = "$unit attr-dict `:` qualified(type($slice))";
}

def Ft_GatherOp : Ft_Op<"gather", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "All-gather of a unit: its whole flat buffer, from every rank's slice";
  let description = [{
    Two gathers of one unit are two buffers with lives of their own, hence the effects: CSE must not merge them. When the
    flat buffer has another element type, the rank's slice is rounded to it before it travels.
  }];
  let arguments = (ins Ft_SliceType:$slice);
  let results = (outs Ft_FlatType:$flat);
  let assemblyFormat = "$slice attr-dict `:` qualified(type($slice)) `->` qualified(type($flat))";
  let hasVerifier = 1;
}

def Ft_FetchOp : Ft_Op<"fetch", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Copies a unit that is whole at rest in host memory to the device, until its release";
  let arguments = (ins Ft_SliceType:$slice);
  let results = (outs Ft_FlatType:$flat);
  let assemblyFormat = "$slice attr-dict `:` qualified(type($slice)) `->` qualified(type($flat))";
  let hasVerifier = 1;
}

def Ft_RefreshOp : Ft_Op<"refresh", [MemoryEffects<[MemRead, MemWrite]>, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "All-gather, in place, of parameters that are whole at rest and of which each rank has updated its slice";
  let arguments = (ins FlatSymbolRefAttr:$unit);
  let assemblyFormat = "$unit attr-dict";
}

def Ft_ReleaseOp : Ft_Op<"release", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Gives up a gathered unit";
  let arguments = (ins Ft_FlatType:$flat);
  let assemblyFormat = "$flat attr-dict `:` qualified(type($flat))";
}

def Ft_ViewOp : Ft_Op<"view", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>,
                               DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "A parameter inside a flat buffer, or inside a slice that is the whole; no copy";
  let arguments = (ins AnyTypeOf<[Ft_FlatType, Ft_SliceType]>:$flat, FlatSymbolRefAttr:$parameter);
  let results = (outs Ft_FloatTensor:$value);
  let assemblyFormat = "$flat `[` $parameter `]` attr-dict `:` type($flat) `->` type($value)";
}

def Ft_GradientOp : Ft_Op<"gradient", [MemoryEffects<[MemWrite]>, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Says that a value is the gradient of a parameter; left by differentiation, consumed when units are formed";
  let arguments = (ins FlatSymbolRefAttr:$parameter, Ft_FloatTensor:$value);
  let assemblyFormat = "$parameter `,` $value attr-dict `:` type($value)";
}

def Ft_PackOp : Ft_Op<"pack", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A unit's flat gradient from the gradients of all its parameters; gaps and padding are zero";
  let description = [{
    One value for each parameter of the unit, in the unit's order. They are written in place: the op that computes one
    writes straight into the flat buffer, so packing moves nothing.
  }];
  let arguments = (ins Variadic<Ft_FloatTensor>:$values, FlatSymbolRefArrayAttr:$parameters);
  let results = (outs Ft_FlatType:$flat);
  let assemblyFormat = "$values `at` $parameters attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Ft_ReduceScatterOp : Ft_Op<"reduce_scatter", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Mean over ranks of a flat gradient; each rank keeps its slice";
  let arguments = (ins Ft_FlatType:$flat);
  let results = (outs Ft_SliceType:$slice);
  let assemblyFormat = "$flat attr-dict `:` qualified(type($flat)) `->` qualified(type($slice))";
  let hasVerifier = 1;
}

def Ft_AllReduceOp : Ft_Op<"all_reduce", [MemoryEffects<[MemRead, MemWrite]>, AllTypesMatch<["x", "result"]>]> {
  let summary = "Mean over ranks of floats (a flat gradient or a scalar), sum over ranks of integers";
  let arguments = (ins AnyTypeOf<[Ft_FlatType, Ft_SliceType, Ft_Tensor]>:$x);
  let results = (outs AnyTypeOf<[Ft_FlatType, Ft_SliceType, Ft_Tensor]>:$result);
  let assemblyFormat = "$x attr-dict `:` type($x)";
  let hasVerifier = 1;
}

def Ft_AccumulateOp : Ft_Op<"accumulate", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Adds x to a sum that lives through micro-steps: state += x";
  let description = [{ The state `name` has the type of x; it starts as zero. Flat gradients and slices use the name of their unit. }];
  let arguments = (ins AnyTypeOf<[Ft_FlatType, Ft_SliceType, Ft_Tensor]>:$x, StrAttr:$name);
  let assemblyFormat = "$x `into` $name attr-dict `:` qualified(type($x))";
}

def Ft_DrainOp : Ft_Op<"drain", [MemoryEffects<[MemRead, MemWrite]>, AllTypesMatch<["x", "result"]>]> {
  let summary = "The sum over micro-steps with the last part x: result = state + x; state = 0";
  let arguments = (ins AnyTypeOf<[Ft_FlatType, Ft_SliceType, Ft_Tensor]>:$x, StrAttr:$name);
  let results = (outs AnyTypeOf<[Ft_FlatType, Ft_SliceType, Ft_Tensor]>:$result);
  let assemblyFormat = "$x `from` $name attr-dict `:` qualified(type($x))";
}

def Ft_HealthOp : Ft_Op<"health", [Pure, DeclareOpInterfaceMethods<CostOpInterface, ["getFlops", "getBytes"]>,
                                   DeclareOpInterfaceMethods<KernelOpInterface, ["getTiedOperand"]>]> {
  let summary = "Marks this rank in a bitmap of ranks when x is not finite everywhere";
  let description = [{ Bit rng[2] mod 4096 of 64 words; the sum over ranks is the bitmap of all of them. }];
  let arguments = (ins AnyTypeOf<[Ft_FlatType, Ft_SliceType, Ft_Tensor]>:$x, Ft_I64Tensor:$rng, Optional<Ft_I64Tensor>:$acc);
  let results = (outs Ft_I64Tensor:$bitmap);
  let assemblyFormat = "$x `,` $rng (`into` $acc^)? attr-dict `:` functional-type(operands, results)";
}

def Ft_LossCountOp : Ft_ComputeOp<"loss_count", [Precision], ["getWorkspaceBytes"]> {
  let summary = "{loss * n, n}, n the number of targets that count (0 and more): sums over ranks and batches weigh right";
  let arguments = (ins Ft_Scalar:$loss, Ft_TokenTensor:$targets);
  let results = (outs Ft_StateTensor:$sum);
  let assemblyFormat = "$loss `,` $targets attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 0;
}

def Ft_SumSquaresOp : Ft_Op<"sum_squares", [Pure, DeclareOpInterfaceMethods<CostOpInterface, ["getFlops", "getBytes"]>,
                                            DeclareOpInterfaceMethods<KernelOpInterface, ["getWorkspaceBytes", "getTiedOperand"]>]> {
  let summary = "Adds the squares of a gradient to an exact fixed-point accumulator";
  let description = [{
    A block of 1024 elements is summed in f64 in a fixed order; block sums are added exactly, as integers: word w of the
    tensor<21xi64> weighs 2^(32 w - 320); word 20 counts blocks whose sum is not finite. So the sum sees neither units nor slices.
  }];
  let arguments = (ins AnyTypeOf<[Ft_FlatType, Ft_SliceType]>:$gradient, Optional<Ft_AccumulatorTensor>:$acc);
  let results = (outs Ft_AccumulatorTensor:$sum);
  let assemblyFormat = "$gradient (`into` $acc^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Ft_ClipCoefficientOp : Ft_Op<"clip_coefficient", [Pure, AttrSizedOperandSegments, DeclareOpInterfaceMethods<CostOpInterface>,
                                                      DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "norm = sqrt(sum) / scale; coefficient = min(1, max_norm / (norm + 1e-6)) / scale, or 1 / scale when max_norm is 0";
  let description = [{
    As torch.nn.utils.clip_grad_norm_ does it after torch.amp.GradScaler.unscale_. `scale` is scaler[0], 1 without scaler. The
    coefficient is NaN when the norm or the loss is not finite: optimizers then skip the step.
  }];
  let arguments = (ins Ft_AccumulatorTensor:$sum, Optional<Ft_Scalar>:$loss, Optional<Ft_StateTensor>:$scaler, F64Attr:$max_norm);
  let results = (outs Ft_Scalar:$norm, Ft_Scalar:$coefficient);
  let assemblyFormat = "$sum (`loss` $loss^)? (`scaler` $scaler^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Ft_LossScaleOp : Ft_Op<"loss_scale", [Pure, DeclareOpInterfaceMethods<CostOpInterface>, DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "The gradient that backward begins with: scaler[0] * factor";
  let arguments = (ins Ft_StateTensor:$scaler, F64Attr:$factor);
  let results = (outs Ft_Scalar:$result);
  let assemblyFormat = "$scaler `factor` custom<Real>($factor) attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Ft_UpdateScalerOp : Ft_Op<"update_scaler", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "One step of dynamic loss scaling: backs off after a skipped step, grows after growth_interval good ones";
  let description = [{
    As torch.amp.GradScaler.update, with DeepSpeed's `hysteresis` (skipped steps before it backs off; 1: at once) and `min_scale`.
    The input `scaler` is changed in place. With `dynamic` 0 the scale stays.
  }];
  let arguments = (ins Ft_StateTensor:$scaler, Ft_Scalar:$coefficient, F64Attr:$growth_factor, F64Attr:$backoff_factor,
                       I64Attr:$growth_interval, I64Attr:$hysteresis, F64Attr:$min_scale, I64Attr:$dynamic);
  let assemblyFormat = "$scaler `,` $coefficient attr-dict `:` type(operands)";
  let hasVerifier = 1;
}

class Ft_OptimizerOp<string mnemonic, dag settings>
    : Ft_Op<mnemonic, [MemoryEffects<[MemRead, MemWrite]>, DeclareOpInterfaceMethods<CostOpInterface, ["getFlops", "getBytes"]>,
                       DeclareOpInterfaceMethods<OptimizerOpInterface, ["getStateRoles"]>,
                       DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let arguments = !con((ins FlatSymbolRefAttr:$unit, AnyTypeOf<[Ft_FlatType, Ft_SliceType]>:$gradient, Ft_Scalar:$coefficient,
                            Ft_Scalar:$lr, Ft_Tensor:$step, Optional<Ft_I64Tensor>:$rng), settings,
                       (ins DenseI64ArrayAttr:$segments, OptionalAttr<DenseI64ArrayAttr>:$stochastic_rounding));
  let assemblyFormat = "$unit `,` $gradient `,` $coefficient `,` $lr `,` $step (`rng` $rng^)? attr-dict `:` type(operands)";
  let hasVerifier = 1;
}

def Ft_AdamwOp : Ft_OptimizerOp<"adamw", (ins F64Attr:$beta1, F64Attr:$beta2, F64Attr:$eps, F64Attr:$weight_decay)> {
  let summary = "One AdamW step on what this rank holds of a unit: parameters and moments are updated in place";
  let description = [{
    With g = coefficient * gradient, t = step + 1 (I. Loshchilov, F. Hutter, "Decoupled weight decay regularization", 2019, in the order of
    torch.optim.AdamW): p -= lr * weight_decay * p (where decay applies); m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2;
    p -= lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps).
    `segments` lists begin, end (in elements of the unit) and whether weight decay applies (0 or 1), for all parameters in order.

    Where bf16 weights have no master, the step is computed in f32 and its result rounded to nearest or, with `stochastic_rounding` and
    `rng`, to one of its two neighbours: to the upper one with the probability that keeps the mean (S. Gupta et al., "Deep learning with limited
    numerical precision", 2015), in steps of 2^-16. Element i of the parameter with the segment k draws from the Philox stream
    2^31 + stochastic_rounding[k] at `step`, seeded with rng[0]: neither slices nor units change its number.
  }];
}

def Ft_AdamOp : Ft_OptimizerOp<"adam", (ins F64Attr:$beta1, F64Attr:$beta2, F64Attr:$eps, F64Attr:$weight_decay)> {
  let summary = "One Adam step: as adamw, but weight decay is part of the gradient";
  let description = [{ g = coefficient * gradient + weight_decay * p, then as adamw without its decay (torch.optim.Adam). }];
}

def Ft_SgdOp : Ft_OptimizerOp<"sgd", (ins F64Attr:$momentum, UnitAttr:$nesterov, F64Attr:$weight_decay)> {
  let summary = "One step of stochastic gradient descent, with momentum where that is not 0";
  let description = [{
    g = coefficient * gradient + weight_decay * p; b = momentum * b + g, b from 0; p -= lr * (nesterov ? g + momentum * b : b)
    (torch.optim.SGD with dampening 0).
  }];
}

def Ft_InitOp : Ft_Op<"init", [MemoryEffects<[MemWrite]>, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Initialises a parameter inside what this rank holds of its unit, and zeroes its moments";
  let description = [{
    Element i of the parameter is drawn from Philox stream `stream` at step 0, so a slice gets the values of the whole.
  }];
  let arguments = (ins FlatSymbolRefAttr:$parameter, Ft_Tensor:$rng, I64Attr:$stream);
  let assemblyFormat = "$parameter `,` $rng attr-dict `:` type($rng)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Activations in host memory
//===----------------------------------------------------------------------===//

def Ft_OffloadOp : Ft_Op<"offload", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Copies an activation to host memory";
  let arguments = (ins Ft_Tensor:$x);
  let results = (outs Ft_HostType:$there);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` qualified(type($there))";
}

def Ft_ReloadOp : Ft_Op<"reload", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Copies an activation back from host memory";
  let arguments = (ins Ft_HostType:$there);
  let results = (outs Ft_Tensor:$x);
  let assemblyFormat = "$there attr-dict `:` qualified(type($there)) `->` type($x)";
}

#endif // FT_OPS
