// The ft dialect itself: its types, attributes and constraints.
#ifndef FT_DIALECT
#define FT_DIALECT

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "dialects/ft/enums.td"

def Ft_Dialect : Dialect {
  let name = "ft";
  let cppNamespace = "::mlir::ft";
  let summary = "Transformers and their training step, on whole tensors and units";
  let description = [{
    Value semantics on ranked tensors. A model is a module with `ft.parameter` symbols and a function
    `@forward(%tokens, %targets) -> tensor<f32>` that returns the loss. Where arguments have names (`ft.input`) they may be others; `ft.constant` marks
    one that has no batch, `ft.output` names results beside the loss, which evaluation reports. The discardable attribute `layer` of an
    op names the layer it belongs to ("transformer.h.3"); wrap policies, recomputation and reports use it. `phase` is
    set by the compiler: "forward", "recompute", "backward", "optimizer".
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
}

//===----------------------------------------------------------------------===//
// Types and attributes
//===----------------------------------------------------------------------===//

class Ft_Type<string name, string typeMnemonic> : TypeDef<Ft_Dialect, name> { let mnemonic = typeMnemonic; }

def Ft_FlatType : Ft_Type<"Flat", "flat"> {
  let summary = "The whole flat buffer of a unit";
  let description = [{ `!ft.flat<@unit, f32>`. Its number of elements depends on the world size: it is padded to a multiple of it. }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$unit, "::mlir::Type":$elementType);
  let assemblyFormat = "`<` $unit `,` $elementType `>`";
}

def Ft_SliceType : Ft_Type<"Slice", "slice"> {
  let summary = "One rank's slice of a unit's flat buffer";
  let description = [{ `!ft.slice<@unit, f32>`. For strategies that do not shard, a slice is the whole. }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$unit, "::mlir::Type":$elementType);
  let assemblyFormat = "`<` $unit `,` $elementType `>`";
}

def Ft_HostType : Ft_Type<"Host", "host"> {
  let summary = "An activation in host memory";
  let parameters = (ins "::mlir::RankedTensorType":$tensor);
  let assemblyFormat = "`<` $tensor `>`";
}

class Ft_Attr<string name, string attrMnemonic> : AttrDef<Ft_Dialect, name> { let mnemonic = attrMnemonic; }

// A 64-bit float, printed with the fewest digits that read back as the same value.
def Ft_RealParameter : AttrParameter<"::mlir::FloatAttr", "a real number"> {
  let parser = "::mlir::ft::parseReal($_parser)";
  let printer = "::mlir::ft::printReal($_printer.getStream(), $_self.getValueAsDouble())";
}

def Ft_InitAttr : Ft_Attr<"Init", "init"> {
  let summary = "How a parameter starts";
  let description = [{
    `#ft.init<normal, 0.02>`: N(0, 0.02^2), the value is the standard deviation. `#ft.init<constant, 1.0>`: that value.
    `#ft.init<uniform, 0.125>`: evenly in [-0.125, 0.125).
  }];
  let parameters = (ins EnumParameter<Ft_InitKind>:$kind, Ft_RealParameter:$number);
  let assemblyFormat = "`<` $kind `,` $number `>`";
  let builders = [AttrBuilder<(ins "::mlir::ft::InitKind":$kind, "double":$value), [{
    return $_get($_ctxt, kind, ::mlir::FloatAttr::get(::mlir::Float64Type::get($_ctxt), value));
  }]>];
  let extraClassDeclaration = [{
    // Standard deviation, the constant, or the bound.
    double getValue() const { return getNumber().getValueAsDouble(); }
  }];
  let genVerifyDecl = 1;
}

def Ft_OriginAttr : Ft_Attr<"Origin", "origin"> {
  let summary = "The op that a composite was outlined from, or is the derivative of";
  let description = [{ `#ft.origin<derivative, "ft.gelu", {approximate = "tanh"}>`. What is known of the op is known of calls: its class for recomputation, its name in reports. }];
  let parameters = (ins EnumParameter<Ft_OriginKind>:$kind, "::mlir::StringAttr":$op, "::mlir::DictionaryAttr":$properties);
  let assemblyFormat = "`<` $kind `,` $op `,` $properties `>`";
}

def Ft_ResidencyAttr : Ft_Attr<"Residency", "residency"> {
  let summary = "Where the parts of a unit lie";
  let description = [{
    `#ft.residency<parameters = slice, gathered = released, gradients = slice, optimizer = slice, host = optimizer>`

    What a rank holds of the parameters at rest, of the gradients once they are reduced and of the optimizer's state, and what becomes of a gathered copy of
    the parameters. `host`: what of it is in host memory, none where it is left out.
  }];
  let parameters = (ins EnumParameter<Ft_Extent>:$parameters, EnumParameter<Ft_Gathered>:$gathered, EnumParameter<Ft_Extent>:$gradients,
                        EnumParameter<Ft_Extent>:$optimizer,
                        DefaultValuedParameter<"::mlir::ft::HostParts", "::mlir::ft::HostParts::none">:$host);
  let assemblyFormat = "`<` struct(params) `>`";
  let builders = [AttrBuilder<(ins "::mlir::ft::Extent":$parameters, "::mlir::ft::Gathered":$gathered, "::mlir::ft::Extent":$gradients,
                                   "::mlir::ft::Extent":$optimizer), [{
    return $_get($_ctxt, parameters, gathered, gradients, optimizer, HostParts::none);
  }]>];
  let extraClassDeclaration = [{
    bool isOnHost(HostParts part) const { return bitEnumContainsAny(getHost(), part); }
    // Whether a copy of the parameters at rest has to be made where they are used.
    bool isCopied() const { return getGathered() != Gathered::never || isOnHost(HostParts::parameters); }
  }];
}

// What kernels take: static, positive extents, at most eight dimensions.
class Ft_TensorOf<list<Type> elementTypes>
    : Type<And<[RankedTensorOf<elementTypes>.predicate, CPred<"::mlir::ft::isKernelShape($_self)">]>,
           "tensor of " # !interleave(!foreach(t, elementTypes, t.summary), " or ") # " with at most 8 positive static dimensions",
           "::mlir::RankedTensorType">;

def Ft_Tensor : Ft_TensorOf<[F32, BF16, F16, I32, I64, I1]>;
def Ft_FloatTensor : Ft_TensorOf<[F32, BF16, F16]>;
def Ft_TokenTensor : Ft_TensorOf<[I32]>;
def Ft_Scalar : 0DTensorOf<[F32]>;
def Ft_I64Tensor : RankedTensorOf<[I64]>;
def Ft_StateTensor : RankedTensorOf<[F32]>;
def Ft_AccumulatorTensor : RankedTensorOf<[I64]>;

#endif // FT_DIALECT
