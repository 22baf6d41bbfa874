// Parameters and inputs.
#ifndef FT_PARAMETER_OPS
#define FT_PARAMETER_OPS

include "dialects/ft/op_base.td"

def Ft_ParameterOp : Ft_Op<"parameter", [Symbol]> {
  let summary = "A parameter of the model";
  let description = [{
    `ft.parameter @"transformer.wte.weight" : tensor<50257x768xf32> = #ft.init<normal, 0.02>`

    `layer` groups parameters for wrap policies; `aliases` are further names under which a checkpoint may hold it (tied weights);
    `stored_as` names the tensors that files of weights have in its place, one behind the other, where the model has in one what they have in
    many: `"experts.{0..7}.{w1,w3}.weight"` are sixteen, that of w3 behind that of w1.
    Weights of rank 2 and more decay (`--weight-decay`), but for those with `no_decay`.
    `rule` is the row of the table of optimizers that updates it, where the job's optimizer leaves that open; `unit` and `offset` (in elements,
    inside the unit's flat buffer) are set when units are formed.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<Ft_FloatTensor>:$type, Ft_InitAttr:$init,
                       OptionalAttr<StrAttr>:$layer, UnitAttr:$no_decay, UnitAttr:$frozen, OptionalAttr<StrArrayAttr>:$aliases,
                       OptionalAttr<StrAttr>:$stored_as,
                       OptionalAttr<StrAttr>:$rule, OptionalAttr<FlatSymbolRefAttr>:$unit, OptionalAttr<I64Attr>:$offset);
  let assemblyFormat = "$sym_name `:` $type `=` qualified($init) attr-dict";
  let hasVerifier = 1;
}

def Ft_UnitOp : Ft_Op<"unit", [Symbol]> {
  let summary = "Parameters that are gathered together, in one flat buffer";
  let description = [{
    `elements`: end of the last parameter, rounded up to a block of 1024. `rule` is that of all its parameters. `small`: no copy of them is ever given up, since
    that would not save much.

    Collectives give it a `residency`; without one all is whole and on the device. Precision gives it element types, each f32 where it is left out: `compute` of its
    gathered parameters, `reduce` of its flat gradient, `accumulate` of the sum of that over micro-steps, `master` of the weights that the optimizer updates (f32, or that of `compute`, and nothing is beside
    them). `working_copy`: a rank keeps its part of the parameters in the type `compute` too, beside the master.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$elements, OptionalAttr<StrAttr>:$rule, UnitAttr:$small,
                       OptionalAttr<Ft_ResidencyAttr>:$residency, OptionalAttr<TypeAttr>:$compute, OptionalAttr<TypeAttr>:$reduce, OptionalAttr<TypeAttr>:$accumulate,
                       OptionalAttr<TypeAttr>:$master, UnitAttr:$working_copy);
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "uint64_t":$elements, "::mlir::StringAttr":$rule), [{
    auto &properties = $_state.getOrAddProperties<Properties>();
    properties.sym_name = $_builder.getStringAttr(name);
    properties.elements = $_builder.getI64IntegerAttr(elements);
    properties.rule = rule;
  }]>];
  let assemblyFormat = "$sym_name attr-dict";
  let extraClassDeclaration = [{
    ResidencyAttr residencyOrWhole() {
      if (std::optional<ResidencyAttr> residency = getResidency())
        return *residency;
      return ResidencyAttr::get(getContext(), Extent::whole, Gathered::never, Extent::whole, Extent::whole);
    }
    Type computeType() { return getCompute().value_or(Float32Type::get(getContext())); }
    Type reduceType() { return getReduce().value_or(Float32Type::get(getContext())); }
    Type accumulateType() { return getAccumulate().value_or(Float32Type::get(getContext())); }
    Type masterType() { return getMaster().value_or(Float32Type::get(getContext())); }
  }];
  let hasVerifier = 1;
}

def Ft_GetOp : Ft_Op<"get", [Extents, Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>,
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
    `scaler`: tensor<3xf32>, the state of dynamic loss scaling, which ft.update_scaler changes. `sample_position`: tensor<i32>, of @sample_step.
  }];
  let arguments = (ins StrAttr:$name);
  let results = (outs Ft_Tensor:$value);
  let assemblyFormat = "$name attr-dict `:` type($value)";
  let hasVerifier = 1;
}

#endif // FT_PARAMETER_OPS
