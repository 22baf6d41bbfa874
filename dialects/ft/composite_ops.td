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
    callee's values again; so of a call only operands that the derivative reads are kept for backward. A result with the attribute `ft.statistic` stays f32. `parameter_grads` are the numbers of results that
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

// An op that is what its body does. `body` is C++ that returns the results in terms of `operands`, with `b`, a CompositeBody, which makes ops;
// `verifier` is C++ that returns whether the op's types and numbers fit.
class Ft_Composite<string mnemonic, list<Trait> traits = []>
    : Ft_Op<mnemonic, !listconcat([Pure, DeclareOpInterfaceMethods<CompositeOpInterface>], traits)> {
  code body = ?;
  code verifier = "return success();";
  let hasVerifier = 1;
  let extraClassDefinition = "LogicalResult $cppClass::verify() {\n" # verifier # "\n}\n"
      # "SmallVector<Value> $cppClass::buildBody(OpBuilder &builder, ValueRange operands) {\n"
      # "  CompositeBody b(builder, getLoc());\n" # body # "\n}\n";
}

def Ft_SoftmaxOp : Ft_Composite<"softmax", [ExtentsOfResult, AllTypesMatch<["x", "result"]>]> {
  let summary = "e^x over the sum of e^x, over the last dimension";
  let description = [{ The largest of a row is taken off first, so nothing overflows. A row that is -inf throughout is NaN, as PyTorch's. }];
  let arguments = (ins Ft_FloatTensor:$x);
  let results = (outs Ft_FloatTensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x)";
  let verifier = [{ return verify::minRank(*this, "x", getX(), 1, "of which the last is summed over"); }];
  // The derivative does not depend on what is taken off.
  let body = [{
    Value x = operands[0], largest = b.map<StopGradientOp>(b.ofRow("max", x));
    Value e = b.map<ExpOp>(b.map<SubOp>({x, largest}));
    return {b.map<DivOp>({e, b.ofRow("sum", e)})};
  }];
}

def Ft_CrossEntropyOp : Ft_Composite<"cross_entropy", [Extents]> {
  let summary = "Mean over rows of logsumexp(logits) - logits[target]";
  let description = [{
    A row whose target is negative is left out of the mean: its gradients are 0, whatever its logits. With no row left the loss is 0. A target beyond the columns makes it NaN.
  }];
  let arguments = (ins Ft_FloatTensor:$logits, Ft_TokenTensor:$targets);
  let results = (outs Ft_Scalar:$loss);
  let assemblyFormat = "$logits `,` $targets attr-dict `:` functional-type(operands, results)";
  let verifier = [{ return verify::targets(*this, "logits", getLogits(), getTargets()); }];
  // Only the gradient of x is chosen by rows, so that a row that is left out costs nothing forward. How many rows count comes
  // first and shares nothing with what is done by rows: of that the gradient is one cluster, which waits for the number.
  let body = [{
    Value x = operands[0], targets = operands[1], one = b.constant(1);
    Value counted = b.sumOfAll(b.map<ClampOp>(b.map<ShiftOp>(targets, 1.0), {0.0, 1.0}));
    Value rows = ConvertOp::create(builder, getLoc(), one.getType(), counted), zero = b.map<ScaleOp>(targets, 0.0);
    Value counts = b.map<GeOp>({targets, zero});
    Value chosen = b.map<SelectOp>({b.spread(counts, x), x, b.map<StopGradientOp>(x)});
    Value rest = b.map<SubOp>({chosen, b.map<StopGradientOp>(b.ofRow("max", x))});
    Value sum = b.reduced("sum", b.map<ExpOp>(rest));
    Value isTarget = b.map<EqOp>({b.spread(targets, x), b.columnsOf(x)});
    Value atTarget = b.reduced("sum", b.map<SelectOp>({isTarget, rest, b.constant(0)}));
    Value isBeyond = b.map<GeOp>({targets, b.map<ShiftOp>(zero, double(verify::shape(x).back()))});
    Value loss = b.map<SelectOp>({isBeyond, b.map<LogOp>(b.constant(-1)), b.map<SubOp>({b.map<LogOp>(sum), atTarget})});
    Value total = b.sumOfAll(b.map<SelectOp>({counts, loss, b.constant(0)}));
    return {b.map<DivOp>({total, b.map<MaximumOp>({rows, one})})};
  }];
}

def Ft_QkNormOp : Ft_Composite<"qk_norm", [ExtentsOfResult, AllTypesMatch<["x", "result"]>]> {
  let summary = "rms_norm of each head by itself, as of queries and keys before attention";
  let description = [{ x is [..., heads * head size], weight [head size] (Qwen3; A. Henry et al., Query-Key Normalization for Transformers, 2020). }];
  let arguments = (ins Ft_FloatTensor:$x, Ft_FloatTensor:$weight, I64Attr:$heads, F64Attr:$eps);
  let results = (outs Ft_FloatTensor:$result);
  let assemblyFormat = "$x `,` $weight `heads` $heads `eps` custom<Real>($eps) attr-dict `:` type($x) `,` type($weight)";
  let verifier = [{
    if (failed(verify::minRank(*this, "x", getX(), 1, "the last of which is heads times head size")) ||
        failed(verify::rank(*this, "weight", getWeight(), 1, "[head size]")) ||
        failed(verify::sameElementType(*this, "weight", getWeight(), "x", getX())))
      return failure();
    int64_t width = verify::shape(getX()).back(), size = verify::shape(getWeight())[0], heads = getHeads();
    if (heads < 1 || width % heads != 0 || width / heads != size)
      return emitOpError() << "x has " << width << " columns; expected heads, " << heads << ", times the elements of weight, " << size;
    return verify::notNegative(*this, "eps", getEps());
  }];
  let body = [{
    ArrayRef<int64_t> dims = verify::shape(operands[0]);
    SmallVector<int64_t> byHead(dims.drop_back());
    byHead.append({int64_t(getHeads()), verify::shape(operands[1])[0]});
    return {b.reshape(b.rmsNorm(b.reshape(operands[0], byHead), operands[1], getEps()), dims)};
  }];
}

def Ft_LayerNormOp : Ft_Composite<"layer_norm", [ExtentsOfResult, CheapToRecompute, OfNorms, AllTypesMatch<["x", "result"]>]> {
  let summary = "(x - mean) / sqrt(var + eps) * weight + bias over the last dimension";
  let arguments = (ins Ft_FloatTensor:$x, Ft_FloatTensor:$weight, Ft_FloatTensor:$bias, F64Attr:$eps);
  let results = (outs Ft_FloatTensor:$result);
  let assemblyFormat = "$x `,` $weight `,` $bias `eps` custom<Real>($eps) attr-dict `:` type($x) `,` type($weight) `,` type($bias)";
  let verifier = [{
    if (failed(verify::isColumns(*this, "weight", getWeight(), getX())) || failed(verify::isColumns(*this, "bias", getBias(), getX())))
      return failure();
    return verify::notNegative(*this, "eps", getEps());
  }];
  // What is left of a row without its mean has the sum 0: so the variance does not depend on the mean.
  let body = [{
    Value x = operands[0], mean = b.mean(x);
    Value deviation = b.map<SubOp>({x, b.spread(b.map<StopGradientOp>(mean), x)});
    Value scale = b.inverseRootMeanSquare(deviation, getEps());
    Value normal = b.map<MulOp>({b.map<SubOp>({x, b.spread(mean, x)}), b.spread(scale, x)});
    return {b.map<AddOp>({b.map<MulOp>({normal, operands[1]}), operands[2]})};
  }];
}

def Ft_RmsNormOp : Ft_Composite<"rms_norm", [ExtentsOfResult, CheapToRecompute, OfNorms, AllTypesMatch<["x", "result"]>]> {
  let summary = "x / sqrt(mean(x^2) + eps) * weight over the last dimension";
  let arguments = (ins Ft_FloatTensor:$x, Ft_FloatTensor:$weight, F64Attr:$eps);
  let results = (outs Ft_FloatTensor:$result);
  let assemblyFormat = "$x `,` $weight `eps` custom<Real>($eps) attr-dict `:` type($x) `,` type($weight)";
  let verifier = [{
    return failure(failed(verify::isColumns(*this, "weight", getWeight(), getX())) || failed(verify::notNegative(*this, "eps", getEps())));
  }];
  let body = [{ return {b.rmsNorm(operands[0], operands[1], getEps())}; }];
}

def Ft_GeluOp : Ft_Composite<"gelu", [ExtentsOfResult, CheapToRecompute, OfMlp, AllTypesMatch<["x", "result"]>]> {
  let summary = "GELU; approximate = \"tanh\" (GPT-2's gelu_new) or \"none\" (erf)";
  let arguments = (ins Ft_FloatTensor:$x, StrAttr:$approximate);
  let results = (outs Ft_FloatTensor:$result);
  let assemblyFormat = "$x `approximate` $approximate attr-dict `:` type($x)";
  let verifier = [{
    if (getApproximate() == "tanh" || getApproximate() == "none")
      return success();
    return emitOpError() << "approximate is \"" << getApproximate() << "\"; expected \"tanh\" or \"none\"";
  }];
  // x (1 + tanh(u)) / 2 = x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3): no cancellation for x < 0.
  let body = [{
    constexpr double kTwoSqrt2OverPi = 1.5957691216057308, kCubic = 0.044715;
    Value x = operands[0];
    if (getApproximate() == "none")
      return {b.map<MulOp>({x, b.map<NormalCdfOp>(x)})};
    Value bend = b.map<ShiftOp>(b.map<ScaleOp>(b.map<SquareOp>(x), kCubic), 1.0);
    Value twoU = b.map<ScaleOp>(b.map<MulOp>({x, bend}), kTwoSqrt2OverPi);
    return {b.map<MulOp>({x, b.map<SigmoidOp>(twoU)})};
  }];
}

def Ft_SwigluOp : Ft_Composite<"swiglu", [ExtentsOfResult, CheapToRecompute, OfMlp, AllTypesMatch<["gate", "up", "result"]>]> {
  let summary = "silu(gate) * up, silu(z) = z * sigmoid(z)";
  let arguments = (ins Ft_FloatTensor:$gate, Ft_FloatTensor:$up);
  let results = (outs Ft_FloatTensor:$result);
  let assemblyFormat = "$gate `,` $up attr-dict `:` type($gate)";
  let body = [{ return {b.map<MulOp>({b.map<SiluOp>(operands[0]), operands[1]})}; }];
}

def Ft_RotateOp : Ft_Composite<"rotate", [Extents, CheapToRecompute, AllTypesMatch<["x", "result"]>, AllTypesMatch<["cosine", "sine"]>]> {
  let summary = "Pairs of each head turned by angles: rotary positions, rotate-half form";
  let description = [{
    x is [B, T, heads * 2 h], cosine and sine [T, h] or [B, T, h]: the pair (x_i, x_{i+h}) of each head is turned by angle i of its position;
    `inverse` turns back. Source: J. Su et al., RoFormer, 2021.
  }];
  let arguments = (ins Ft_FloatTensor:$x, Ft_FloatTensor:$cosine, Ft_FloatTensor:$sine, I64Attr:$heads, UnitAttr:$inverse);
  let results = (outs Ft_FloatTensor:$result);
  let assemblyFormat = "$x `by` $cosine `,` $sine `heads` $heads (`inverse` $inverse^)? attr-dict `:` type($x) `,` type($cosine)";
  let verifier = [{ return verify::rotation(*this, getX(), getCosine(), getHeads()); }];
  let body = [{
    ArrayRef<int64_t> dims = verify::shape(operands[0]), angles = verify::shape(operands[1]);
    SmallVector<int64_t> pairs = {dims[0], dims[1], int64_t(getHeads()), 2, angles.back()}, half = pairs, ofPosition(angles.drop_back());
    half[3] = 1;
    ofPosition.append({1, 1, angles.back()});
    auto byHead = [&](Value of) { return b.broadcast(b.reshape(of, ofPosition), half); };
    Value x = b.reshape(operands[0], pairs), cosine = byHead(operands[1]), sine = byHead(operands[2]);
    Value first = b.slice(x, {0, 0, 0, 0, 0}, half), second = b.slice(x, {0, 0, 0, 1, 0}, half);
    Value left = b.map<MulOp>({first, cosine}), right = b.map<MulOp>({second, cosine});
    Value down = b.map<MulOp>({second, sine}), up = b.map<MulOp>({first, sine});
    if (getInverse())
      return {b.reshape(b.concat({b.map<AddOp>({left, down}), b.map<SubOp>({right, up})}, 3), dims)};
    return {b.reshape(b.concat({b.map<SubOp>({left, down}), b.map<AddOp>({right, up})}, 3), dims)};
  }];
}

def Ft_RopeOp : Ft_Op<"rope", [ExtentsOfResult, Pure, DeclareOpInterfaceMethods<ShorthandOpInterface>, AllTypesMatch<["x", "result"]>]> {
  let summary = "Rotary position embedding, rotate-half form: ft.rotate by the ft.rotary_table of the positions";
  let description = [{
    x is [B, T, heads * head size], position = index in T. With h = head size / 2, frequency_i = base^(-i / h): the pair
    (x_i, x_{i+h}) is rotated by position * frequency_i; `inverse` rotates back. All that have one base and head size share a table.
    Other frequencies, or positions that are an input: ft.rotate by cosines and sines of one's own.
  }];
  let arguments = (ins Ft_FloatTensor:$x, I64Attr:$heads, F64Attr:$base, UnitAttr:$inverse);
  let results = (outs Ft_FloatTensor:$result);
  let assemblyFormat = "$x `heads` $heads `base` custom<Real>($base) (`inverse` $inverse^)? attr-dict `:` type($x)";
  let hasVerifier = 1;
}

def Ft_DropoutOp : Ft_Composite<"dropout", [ExtentsOfResult, CheapToRecompute, RandomDropout, AllTypesMatch<["x", "result"]>]> {
  let summary = "x with each element zeroed with probability rate, the others divided by 1 - rate";
  let description = [{
    An element is kept when u >= rate, u the upper 24 bits of its ft.random_bits of this stream over 2^24. Nothing is stored: the gradient draws
    the same numbers, and so does computing again. Evaluation leaves it out.
  }];
  let arguments = (ins Ft_FloatTensor:$x, Ft_Tensor:$rng, F64Attr:$rate, I64Attr:$stream);
  let results = (outs Ft_FloatTensor:$result);
  let assemblyFormat = "$x `,` $rng `rate` custom<Real>($rate) `stream` $stream attr-dict `:` type($x) `,` type($rng)";
  let verifier = [{ return failure(failed(verify::dropoutRate(*this, getRate())) || failed(verify::randomState(*this, getRng()))); }];
  // Numbers of 24 bits and their bound are exact in f32.
  let body = [{
    Value x = operands[0];
    double rate = getRate().convertToDouble(), bound = std::ceil(rate * 0x1p24) * 0x1p-24;
    Value keep = b.map<GeOp>({b.uniform(operands[1], getStream(), x), b.constant(bound)});
    return {b.map<SelectOp>({keep, b.map<ScaleOp>(x, 1 / (1 - rate)), b.constant(0)})};
  }];
}

// The Free Transformer's latent variable (F. Fleuret, "The Free Transformer", 2025): H bits a position.

def Ft_SampleBitsOp : Ft_Composite<"sample_bits", [Extents, Random]> {
  let summary = "Index d = sum_h b_h 2^h with b_h ~ Bernoulli(sigmoid(logits[..., h]))";
  let description = [{ b_h is 1 when u < sigmoid(logit), u the upper 24 bits of its ft.random_bits of this stream over 2^24. }];
  let arguments = (ins Ft_FloatTensor:$logits, Ft_Tensor:$rng, I64Attr:$stream);
  let results = (outs Ft_TokenTensor:$index);
  let assemblyFormat = "$logits `,` $rng `stream` $stream attr-dict `:` functional-type(operands, results)";
  let verifier = [{
    if (failed(verify::bits(*this, getLogits())) || failed(verify::randomState(*this, getRng())))
      return failure();
    return verify::shapeIs(*this, "index", getIndex(), verify::shape(getLogits()).drop_back(), "the positions of logits");
  }];
  // 2^h is the product of 2^(2^j) over the bits j of h.
  let body = [{
    Value x = operands[0];
    auto integers = [&](ArrayRef<int64_t> dims) { return RankedTensorType::get(dims, builder.getI32Type()); };
    int64_t bits = verify::shape(x).back();
    Value h = IotaOp::create(builder, getLoc(), integers({bits})), power = b.map<ShiftOp>(b.map<ScaleOp>(h, 0.0), 1.0);
    for (int64_t j = 0; int64_t{1} << j < bits; ++j) {
      Value bit = b.map<RemainderOp>(b.map<FloorDivOp>(h, double(int64_t{1} << j)), 2.0);
      power = b.map<MulOp>({power, b.map<ShiftOp>(b.map<ScaleOp>(bit, std::exp2(double(int64_t{1} << j)) - 1), 1.0)});
    }
    Value set = b.map<LtOp>({b.uniform(operands[1], getStream(), x), b.map<SigmoidOp>(x)});
    Value number = ConvertOp::create(builder, getLoc(), integers(verify::shape(x)), set);
    return {b.reduced("sum", b.map<MulOp>({number, power}))};
  }];
}

def Ft_BitsKlOp : Ft_Composite<"bits_kl", [ExtentsOfResult]> {
  let summary = "Mean over positions of max(0, KL_t - kappa), KL_t = H ln 2 - sum_h entropy(sigmoid(l_h)), in nats";
  let arguments = (ins Ft_FloatTensor:$logits, F64Attr:$kappa);
  let results = (outs Ft_Scalar:$kl);
  let assemblyFormat = "$logits `kappa` custom<Real>($kappa) attr-dict `:` functional-type(operands, results)";
  let verifier = [{
    if (failed(verify::minRank(*this, "logits", getLogits(), 1, "[..., bits]")))
      return failure();
    double kappa = getKappa().convertToDouble();
    return kappa >= 0 ? success() : emitOpError() << "kappa is " << kappa << "; expected 0 or more nats";
  }];
  // The entropy of sigmoid(l) is ln(1 + e^-|l|) + |l| sigmoid(-|l|). Its derivative, l times that of the sigmoid, is written beside it: what
  // follows from the formula takes like numbers from each other.
  let body = [{
    Value x = operands[0], less = b.map<NegOp>(b.map<AbsOp>(x)), s = b.map<SigmoidOp>(x);
    Value negative = b.map<SubOp>({b.map<MulOp>({less, b.map<SigmoidOp>(less)}), b.map<LogOp>(b.map<ShiftOp>(b.map<ExpOp>(less), 1.0))});
    Value slope = b.map<MulOp>({b.map<StopGradientOp>(x), b.map<SubOp>({s, b.map<StopGradientOp>(s)})});
    Value kl = b.map<AddOp>({b.map<StopGradientOp>(b.map<ShiftOp>(negative, std::log(2.0))), slope});
    return {b.meanOfAll(b.map<ReluOp>(b.map<ShiftOp>(b.reduced("sum", kl), -getKappa().convertToDouble())))};
  }];
}

#endif // FT_COMPOSITE_OPS
