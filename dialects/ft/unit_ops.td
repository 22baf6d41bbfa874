// Units, collectives, optimizer. These have identity or effects, so that neither CSE nor DCE touches them.
#ifndef FT_UNIT_OPS
#define FT_UNIT_OPS

include "dialects/ft/op_base.td"

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
    flat buffer has another element type, the rank's slice is rounded to it before it travels. Slices are those of the
    mesh's axis `shard`, here as in all ops.
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
    writes straight into the flat buffer, so packing moves nothing. In the phase `optimizer` they are directions, of gradients that are reduced already.
  }];
  let arguments = (ins Variadic<Ft_FloatTensor>:$values, FlatSymbolRefArrayAttr:$parameters);
  let results = (outs Ft_FlatType:$flat);
  let assemblyFormat = "$values `at` $parameters attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    // Not yet reduced, as backward makes them.
    bool isOfGradients() { return !(getPhase(*this) && getPhase(*this).getValue() == kPhaseOptimizer); }
  }];
}

def Ft_ReduceScatterOp : Ft_Op<"reduce_scatter", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Sum over ranks of a flat gradient; each rank keeps its slice";
  let arguments = (ins Ft_FlatType:$flat);
  let results = (outs Ft_SliceType:$slice);
  let assemblyFormat = "$flat attr-dict `:` qualified(type($flat)) `->` qualified(type($slice))";
  let hasVerifier = 1;
}

def Ft_DistributeOp : Ft_Op<"distribute", [MemoryEffects<[MemRead, MemWrite]>, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "From slices of units to whole parameters, each on the rank that computes on it";
  let description = [{
    `groups` cuts `parameters` into groups of equal shape. The ranks of the shard axis have those of a group in turn: of n parameters the i-th result, of n as
    well, is on rank r of N the parameter i N + r. A rank that has none does not run what reads the result.
  }];
  let arguments = (ins Variadic<Ft_SliceType>:$slices, FlatSymbolRefArrayAttr:$parameters, DenseI64ArrayAttr:$groups);
  let results = (outs Variadic<Ft_FloatTensor>:$values);
  let assemblyFormat = "$slices `of` $parameters `groups` $groups attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Ft_CollectOp : Ft_Op<"collect", [MemoryEffects<[MemRead, MemWrite]>, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "The way back from ft.distribute: to each rank its slices, 0 between parameters";
  let arguments = (ins Variadic<Ft_FloatTensor>:$values, FlatSymbolRefArrayAttr:$parameters, DenseI64ArrayAttr:$groups);
  let results = (outs Variadic<Ft_SliceType>:$slices);
  let assemblyFormat = "$values `of` $parameters `groups` $groups attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Ft_AllReduceOp : Ft_Op<"all_reduce", [MemoryEffects<[MemRead, MemWrite]>, AllTypesMatch<["x", "result"]>]> {
  let summary = "Sum over the ranks on `axis`, of a flat gradient, a slice or a tensor";
  let arguments = (ins AnyTypeOf<[Ft_FlatType, Ft_SliceType, Ft_Tensor]>:$x, Ft_Axis:$axis);
  let results = (outs AnyTypeOf<[Ft_FlatType, Ft_SliceType, Ft_Tensor]>:$result);
  let assemblyFormat = "$x `over` $axis attr-dict `:` type($x)";
  let hasVerifier = 1;
}

def Ft_AccumulatorOp : Ft_Op<"accumulator", [MemoryEffects<[MemRead]>, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "The sum of a unit's flat gradients over the micro-steps so far, where it lies";
  let description = [{ What begins with a view of it, and is packed in the place of that, is added to it. }];
  let arguments = (ins StrAttr:$name);
  let results = (outs Ft_FlatType:$flat);
  let assemblyFormat = "$name attr-dict `:` qualified(type($flat))";
}

def Ft_AccumulateOp : Ft_Op<"accumulate", [MemoryEffects<[MemRead, MemWrite]>, MicroStepSumOpInterface]> {
  let summary = "Adds x to a sum that lives through micro-steps: state += x";
  let description = [{
    The state `name` starts as zero. Flat gradients and slices use the name of their unit, and their sum has the type `accumulate` that it says; others have the
    type of x. With `in_place` x is a flat gradient that lies where the sum does, and has been added.
  }];
  let arguments = (ins AnyTypeOf<[Ft_FlatType, Ft_SliceType, Ft_Tensor]>:$x, StrAttr:$name, UnitAttr:$in_place);
  let assemblyFormat = "$x `into` $name (`in_place` $in_place^)? attr-dict `:` qualified(type($x))";
}

def Ft_AccumulatedOp : Ft_Op<"accumulated", [MemoryEffects<[MemRead, MemWrite]>, MicroStepSumOpInterface]> {
  let summary = "The sum over micro-steps with the last part x: result = state + x; state = 0";
  let description = [{
    The result has the type of x; of a flat gradient the elements may be of another type, to which the sum is rounded. With `in_place` x is a flat
    gradient that lies where the sum does, and has been added: result = state; state = 0.
  }];
  let arguments = (ins AnyTypeOf<[Ft_FlatType, Ft_SliceType, Ft_Tensor]>:$x, StrAttr:$name, UnitAttr:$in_place);
  let results = (outs AnyTypeOf<[Ft_FlatType, Ft_SliceType, Ft_Tensor]>:$result);
  let assemblyFormat = "$x `from` $name (`in_place` $in_place^)? attr-dict `:` custom<Rounding>(type($x), type($result))";
  let hasVerifier = 1;
}

def Ft_LossCountOp : Ft_ComputeOp<"loss_count", [Precision], ["getWorkspaceBytes"]> {
  let summary = "{loss * n, n}, n the number of targets that count (0 and more): sums over ranks and batches weigh right";
  let arguments = (ins Ft_Scalar:$loss, Ft_TokenTensor:$targets);
  let results = (outs Ft_StateTensor:$sum);
  let assemblyFormat = "$loss `,` $targets attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 0;
}

def Ft_CountTargetsOp : Ft_Op<"count_targets", [Pure, DeclareOpInterfaceMethods<CostOpInterface>, DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "{n, N}, n the number of targets that count (0 and more), N = `of` that may; share = n / N";
  let description = [{
    Targets that the model itself leaves out, such as those behind the end of each sequence when it shifts labels, are not among the N.

    The loss of a rank's micro-step, a mean over its own n targets, is multiplied by share: a mean over all N of them, in which those that do not count add
    nothing. Such means may be added up whatever their n; ft.counted_mean divides the sum by what all of them counted.
  }];
  let arguments = (ins Ft_TokenTensor:$targets, I64Attr:$of);
  let results = (outs Ft_I64Tensor:$count, Ft_Scalar:$share);
  let assemblyFormat = "$targets `of` $of attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Ft_CountedMeanOp : Ft_Op<"counted_mean", [Pure, DeclareOpInterfaceMethods<CostOpInterface>, DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "factor = N / n of count = {n, N}; mean = loss * factor";
  let description = [{
    `count` is the sum of ft.count_targets over micro-steps and ranks, `loss` the mean of what they have. Gradients have the same factor to go
    (ft.clip_coefficient). Where all targets count it is 1. Where none does both results are NaN, and the step is not applied.
  }];
  let arguments = (ins Ft_I64Tensor:$count, Ft_Scalar:$loss);
  let results = (outs Ft_Scalar:$mean, Ft_Scalar:$factor);
  let assemblyFormat = "$count `,` $loss attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Ft_SumSquaresOp : Ft_Op<"sum_squares", [Pure, AttrSizedOperandSegments, DeclareOpInterfaceMethods<CostOpInterface, ["getFlops", "getBytes"]>,
                                            DeclareOpInterfaceMethods<KernelOpInterface, ["getKernelOperands", "getWorkspaceBytes", "getTiedOperand"]>]> {
  let summary = "Adds the squares of a gradient to an exact fixed-point accumulator";
  let description = [{
    A block of 1024 elements is summed in f64 in a fixed order; block sums are added exactly, as integers: word w of the
    tensor<21xi64> weighs 2^(32 w - 320); word 20 counts blocks whose sum is not finite. So the sum sees neither units nor slices.

    The squares are those of elements times `factor`, rounded to f32, where there is one: of the mean that ft.update makes of a sum over ranks.
  }];
  let arguments = (ins AnyTypeOf<[Ft_FlatType, Ft_SliceType]>:$gradient, Optional<Ft_Scalar>:$factor, Optional<Ft_AccumulatorTensor>:$acc);
  let results = (outs Ft_AccumulatorTensor:$sum);
  let assemblyFormat = "$gradient (`times` $factor^)? (`into` $acc^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Ft_ClipCoefficientOp : Ft_Op<"clip_coefficient", [Pure, AttrSizedOperandSegments, DeclareOpInterfaceMethods<CostOpInterface>,
                                                      DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "norm = sqrt(sum) / scale * factor; coefficient = min(1, max_norm / (norm + 1e-6)) / scale * factor, or factor / scale when max_norm is 0";
  let description = [{
    As torch.nn.utils.clip_grad_norm_ does it after torch.amp.GradScaler.unscale_. `scale` is scaler[0], 1 without scaler; `factor` what gradients are
    still to be multiplied by (ft.counted_mean), 1 without. The coefficient is NaN when the norm or the loss is not finite: optimizers then skip the step.
  }];
  let arguments = (ins Ft_AccumulatorTensor:$sum, Optional<Ft_Scalar>:$loss, Optional<Ft_StateTensor>:$scaler, Optional<Ft_Scalar>:$factor, F64Attr:$max_norm);
  let results = (outs Ft_Scalar:$norm, Ft_Scalar:$coefficient);
  let assemblyFormat = "$sum (`loss` $loss^)? (`scaler` $scaler^)? (`factor` $factor^)? attr-dict `:` functional-type(operands, results)";
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
    The input `scaler` is changed in place. With `dynamic` 0 the scale stays, and so it does where `factor` (ft.counted_mean) is NaN: no target counted.
  }];
  let arguments = (ins Ft_StateTensor:$scaler, Ft_Scalar:$coefficient, Optional<Ft_Scalar>:$factor, F64Attr:$growth_factor, F64Attr:$backoff_factor,
                       I64Attr:$growth_interval, I64Attr:$hysteresis, F64Attr:$min_scale, I64Attr:$dynamic);
  let assemblyFormat = "$scaler `,` $coefficient (`factor` $factor^)? attr-dict `:` type(operands)";
  let hasVerifier = 1;
}

def Ft_UpdateScalarsOp : Ft_Op<"update_scalars", [Pure, Precision, DeclareOpInterfaceMethods<CostOpInterface>, DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "The numbers of a step that updates of weights read: a row for weights that do not decay, a row for those that do";
  let description = [{
    `formulas`, with semicolons between, are in terms of clip (the coefficient), lr, t = step + 1, weight_decay (0 in the first row) and, where it is given,
    inverse_ranks, with + - * / ^, sqrt, min and max. They are computed in f64 and rounded to f32. The first is clip.
  }];
  let arguments = (ins Ft_Scalar:$coefficient, Ft_Scalar:$lr, Ft_Tensor:$step, Optional<Ft_Scalar>:$inverse_ranks, StrAttr:$formulas, F64Attr:$weight_decay);
  let results = (outs Ft_StateTensor:$scalars);
  let assemblyFormat = "$coefficient `,` $lr `,` $step (`,` $inverse_ranks^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Ft_OrthogonalizeOp : Ft_Op<"orthogonalize", [Pure, AllTypesMatch<["x", "result"]>]> {
  let summary = "Each matrix, of the last two dimensions, with its singular values near 1, times 0.2 sqrt(the larger of its extents)";
  let description = [{
    Five steps X <- a X + (b A + c A A) X, A = X X^T, from X / max(|X|, 1e-7), with (a, b, c) = (3.4445, -4.7750, 2.0315) (K. Jordan et al., "Muon: an
    optimizer for hidden layers in neural networks", 2024). The factor gives a step the root mean square that one of AdamW has (J. Liu et al.,
    "Muon is scalable for LLM training", 2025). --ft-expand-orthogonalize writes it in products.
  }];
  let arguments = (ins Ft_FloatTensor:$x);
  let results = (outs Ft_FloatTensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x)";
  let hasVerifier = 1;
}

def Ft_LoadStateOp : Ft_Op<"load_state", [MemoryEffects<[MemRead]>, Precision, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "What the optimizer keeps of the rows, the columns or the vectors of a unit's parameters";
  let description = [{
    A number for each row (of `layout` rows) or column (columns) of each matrix in the last two dimensions of each parameter, or for each element of the parameters of rank 0 and 1
    (vectors), one parameter after the other, in order and without gaps. It is whole on every rank, and 0 at first.
  }];
  let arguments = (ins FlatSymbolRefAttr:$unit, StrAttr:$state, Ft_StateLayout:$layout);
  let results = (outs Ft_StateTensor:$value);
  let assemblyFormat = "$unit $state `by` $layout attr-dict `:` type($value)";
}

def Ft_StoreStateOp : Ft_Op<"store_state", [MemoryEffects<[MemWrite]>, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Writes what ft.load_state reads";
  let arguments = (ins Ft_StateTensor:$value, FlatSymbolRefAttr:$unit, StrAttr:$state, Ft_StateLayout:$layout);
  let assemblyFormat = "$value `into` $unit $state `by` $layout attr-dict `:` type($value)";
}

def Ft_UpdateOp : Ft_Op<"update", [MemoryEffects<[MemRead, MemWrite]>, DeclareOpInterfaceMethods<CostOpInterface, ["getFlops", "getBytes"]>,
                                   DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "One step of an optimizer on what this rank holds of a unit: weights and state are updated in place";
  let description = [{
    `body` is a private function with the attribute `ft.update`, of primitives on a block of 1024 elements in f32: gradient, parameter, a state for
    each of `states`, then the scalars of `scalars`, one by one; it returns parameter and states. --ft-form-updates makes it a cluster whose types are
    final. Where the first scalar, the coefficient of the gradient, is NaN, nothing changes.

    With a result, `direction`, that is written instead of the parameter: the body takes gradient, states and scalars, and returns direction and states. What
    becomes of it where each parameter is looked at whole is the gradient of another update. The gradient of an update of what this rank holds may be a whole flat buffer.

    Where the parameters lie, and which of them weight decay applies to (the row of `scalars`), the unit's ft.parameter say.

    Where bf16 weights have no master, the step is computed in f32 and its result rounded to nearest or, with `rounding`
    (rng and step), to one of its two neighbours: to the upper one with the probability that keeps the mean (S. Gupta et al., "Deep learning with
    limited numerical precision", 2015), in steps of 2^-16. Element i of the k-th ft.parameter of the module draws from the Philox stream
    2^31 + k at `step`, seeded with rng[0]: neither slices nor units change its number.
  }];
  let arguments = (ins FlatSymbolRefAttr:$unit, FlatSymbolRefAttr:$body, AnyTypeOf<[Ft_FlatType, Ft_SliceType]>:$gradient,
                       Ft_StateTensor:$scalars, Variadic<Ft_I64Tensor>:$rounding, StrArrayAttr:$states);
  let results = (outs Optional<AnyTypeOf<[Ft_FlatType, Ft_SliceType]>>:$direction);
  let assemblyFormat = [{
    $unit `by` $body `(` $gradient `,` $scalars (`,` $rounding^)? `)` `states` $states attr-dict `:` type(operands)
    (`->` type($direction)^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    bool roundsStochastically() { return !getRounding().empty(); }
  }];
}

def Ft_InitOp : Ft_Op<"init", [MemoryEffects<[MemWrite]>, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Initialises a parameter inside what this rank holds of its unit, and zeroes its moments";
  let description = [{
    Element i of the k-th ft.parameter of the module is drawn from Philox stream k at step 0, so a slice gets the values of the whole.
  }];
  let arguments = (ins FlatSymbolRefAttr:$parameter, Ft_Tensor:$rng);
  let assemblyFormat = "$parameter `,` $rng attr-dict `:` type($rng)";
  let hasVerifier = 1;
}

#endif // FT_UNIT_OPS
