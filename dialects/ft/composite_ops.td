// Composites: ops that are defined by a body of primitives. Those of the dialect become functions of the module, as users write them
// themselves, and calls of these (--ft-outline-composites).
#ifndef FT_COMPOSITE_OPS
#define FT_COMPOSITE_OPS

include "dialects/ft/op_base.td"

def Ft_CallOp : Ft_ComputeOp<"call", [DeclareOpInterfaceMethods<SymbolUserOpInterface>, RandomCall, Precision],
                             ["getKernelName", "getWorkspaceBytes", "isCheapToRecompute", "getOpClass"], ["getFlops", "getModelFlops", "getBytes"]> {
  let summary = "A composite: what a function of the module computes, as one op";
  let description = [{
    `callee` is a private function with the attribute `ft.composite`, whose floats are all f32. It computes in f32 whatever the precision: operands are
    widened, results rounded once. Its derivative is a composite too, made once for all calls, that computes what it needs of the
    callee's values again; so of a call only operands that the derivative reads are kept for backward. `parameter_grads` are the numbers of results that
    are gradients of parameters, rounded to the type in which those are reduced; `streams` are those of the generator for what the callee calls its
    streams 0, 1, ...; both are set by the compiler.
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, Variadic<Ft_Tensor>:$inputs, OptionalAttr<DenseI64ArrayAttr>:$parameter_grads,
                       OptionalAttr<DenseI64ArrayAttr>:$streams);
  let results = (outs Variadic<Ft_Tensor>:$outputs);
  let assemblyFormat = [{
    $callee `(` $inputs `)` (`parameter_grads` $parameter_grads^)? (`streams` $streams^)? attr-dict `:` functional-type($inputs, $outputs)
  }];
}

// An op that is what its body does; the bodies are in composite_bodies.cc.
class Ft_Composite<string mnemonic, list<Trait> traits = []>
    : Ft_Op<mnemonic, !listconcat([Pure, DeclareOpInterfaceMethods<CompositeOpInterface>], traits)>;

def Ft_SoftmaxOp : Ft_Composite<"softmax", [AllTypesMatch<["x", "result"]>]> {
  let summary = "e^x over the sum of e^x, over the last dimension";
  let description = [{ The largest of a row is taken off first, so nothing overflows. A row that is -inf throughout is NaN, as PyTorch's. }];
  let arguments = (ins Ft_FloatTensor:$x);
  let results = (outs Ft_FloatTensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x)";
  let hasVerifier = 1;
}

def Ft_QkNormOp : Ft_Composite<"qk_norm", [AllTypesMatch<["x", "result"]>]> {
  let summary = "rms_norm of each head by itself, as of queries and keys before attention";
  let description = [{ x is [..., heads * head size], weight [head size] (Qwen3; A. Henry et al., Query-Key Normalization for Transformers, 2020). }];
  let arguments = (ins Ft_FloatTensor:$x, Ft_FloatTensor:$weight, I64Attr:$heads, F64Attr:$eps);
  let results = (outs Ft_FloatTensor:$result);
  let assemblyFormat = "$x `,` $weight `heads` $heads `eps` custom<Real>($eps) attr-dict `:` type($x) `,` type($weight)";
  let hasVerifier = 1;
}

def Ft_LayerNormOp : Ft_Composite<"layer_norm", [CheapToRecompute, OfNorms, AllTypesMatch<["x", "result"]>]> {
  let summary = "(x - mean) / sqrt(var + eps) * weight + bias over the last dimension";
  let arguments = (ins Ft_FloatTensor:$x, Ft_FloatTensor:$weight, Ft_FloatTensor:$bias, F64Attr:$eps);
  let results = (outs Ft_FloatTensor:$result);
  let assemblyFormat = "$x `,` $weight `,` $bias `eps` custom<Real>($eps) attr-dict `:` type($x) `,` type($weight) `,` type($bias)";
  let hasVerifier = 1;
}

def Ft_RmsNormOp : Ft_Composite<"rms_norm", [CheapToRecompute, OfNorms, AllTypesMatch<["x", "result"]>]> {
  let summary = "x / sqrt(mean(x^2) + eps) * weight over the last dimension";
  let arguments = (ins Ft_FloatTensor:$x, Ft_FloatTensor:$weight, F64Attr:$eps);
  let results = (outs Ft_FloatTensor:$result);
  let assemblyFormat = "$x `,` $weight `eps` custom<Real>($eps) attr-dict `:` type($x) `,` type($weight)";
  let hasVerifier = 1;
}

def Ft_GeluOp : Ft_Composite<"gelu", [CheapToRecompute, OfMlp, AllTypesMatch<["x", "result"]>]> {
  let summary = "GELU; approximate = \"tanh\" (GPT-2's gelu_new) or \"none\" (erf)";
  let arguments = (ins Ft_FloatTensor:$x, StrAttr:$approximate);
  let results = (outs Ft_FloatTensor:$result);
  let assemblyFormat = "$x `approximate` $approximate attr-dict `:` type($x)";
  let hasVerifier = 1;
}

def Ft_SwigluOp : Ft_Composite<"swiglu", [CheapToRecompute, OfMlp, AllTypesMatch<["gate", "up", "result"]>]> {
  let summary = "silu(gate) * up, silu(z) = z * sigmoid(z)";
  let arguments = (ins Ft_FloatTensor:$gate, Ft_FloatTensor:$up);
  let results = (outs Ft_FloatTensor:$result);
  let assemblyFormat = "$gate `,` $up attr-dict `:` type($gate)";
}

def Ft_DropoutOp : Ft_Composite<"dropout", [CheapToRecompute, RandomDropout, AllTypesMatch<["x", "result"]>]> {
  let summary = "x with each element zeroed with probability rate, the others divided by 1 - rate";
  let description = [{
    An element is kept when u >= rate, u the upper 24 bits of its ft.random_bits of this stream over 2^24. Nothing is stored: the gradient draws
    the same numbers, and so does computing again. Evaluation leaves it out.
  }];
  let arguments = (ins Ft_FloatTensor:$x, Ft_Tensor:$rng, F64Attr:$rate, I64Attr:$stream);
  let results = (outs Ft_FloatTensor:$result);
  let assemblyFormat = "$x `,` $rng `rate` custom<Real>($rate) `stream` $stream attr-dict `:` type($x) `,` type($rng)";
  let hasVerifier = 1;
}

#endif // FT_COMPOSITE_OPS
