// Primitives that are not elementwise (those are rows of runtime/base/elementwise.def): shapes, sums, products. Verifier, derivative and
// cost of all are in primitive_ops.cc.
#ifndef FT_PRIMITIVE_OPS
#define FT_PRIMITIVE_OPS

include "dialects/ft/op_base.td"

class Ft_Primitive<string mnemonic, list<Trait> traits = [], list<string> kernelMethods = [], list<string> costMethods = []>
    : Ft_ComputeOp<mnemonic, !listconcat([Differentiable, Precision], traits), kernelMethods, costMethods>;

def Ft_ConvertOp : Ft_Primitive<"convert", [ExtentsOfResult, CheapToRecompute]> {
  let summary = "Elements in another type: integers or truth values to floats, or the other way";
  let description = [{
    Floats become integers towards zero, with the ends of the type for what is beyond them and 0 for NaN; truth values where they are
    not 0. Between floats nothing is converted here: --mixed-precision decides their types.
  }];
  let arguments = (ins Ft_Tensor:$x);
  let results = (outs Ft_Tensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($result)";
}

def Ft_BroadcastOp : Ft_Primitive<"broadcast", [Extents, CheapToRecompute, MovesElements]> {
  let summary = "Repeats x over dimensions that it lacks, or has with one element";
  let description = [{ Dimensions are aligned at the last, as torch.Tensor.expand does it. }];
  let arguments = (ins Ft_Tensor:$x);
  let results = (outs Ft_Tensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($result)";
  let hasFolder = 1;
}

def Ft_ReshapeOp : Ft_Primitive<"reshape", [Extents, MovesElements]> {
  let summary = "The same elements in the same order, in another shape";
  let arguments = (ins Ft_Tensor:$x);
  let results = (outs Ft_Tensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($result)";
  let hasFolder = 1;
}

def Ft_TransposeOp : Ft_Primitive<"transpose", [Extents, MovesElements]> {
  let summary = "Dimension i of the result is dimension permutation[i] of x";
  let arguments = (ins Ft_Tensor:$x, DenseI64ArrayAttr:$permutation);
  let results = (outs Ft_Tensor:$result);
  let assemblyFormat = "$x $permutation attr-dict `:` type($x) `->` type($result)";
  let hasFolder = 1;
}

def Ft_SliceOp : Ft_Primitive<"slice", [Extents, MovesElements]> {
  let summary = "The box of x that begins at `begin` and has the extents of the result";
  let arguments = (ins Ft_Tensor:$x, DenseI64ArrayAttr:$begin);
  let results = (outs Ft_Tensor:$result);
  let assemblyFormat = "$x `at` $begin attr-dict `:` type($x) `->` type($result)";
  let hasFolder = 1;
}

def Ft_PadOp : Ft_Primitive<"pad", [Extents, MovesElements]> {
  let summary = "x with zeros around it: low[i] of them before dimension i, and after it as many as the result has room for";
  let arguments = (ins Ft_Tensor:$x, DenseI64ArrayAttr:$low);
  let results = (outs Ft_Tensor:$result);
  let assemblyFormat = "$x `at` $low attr-dict `:` type($x) `->` type($result)";
  let hasFolder = 1;
}

def Ft_RandomBitsOp : Ft_ComputeOp<"random_bits", [ExtentsOfResult, CheapToRecompute, Random]> {
  let summary = "32 random bits for each element";
  let description = [{
    Element i of rank r has the word of Philox 4x32-10 with seed rng[0], stream `stream`, micro-step rng[1] and element r * elements + i, so what is
    drawn depends on neither order nor cuts, and computing again draws the same. In a composite `stream` is a name of its own: each call has other numbers.
    For u in [0, 1), of 24 bits: ft.floor_div by 256, ft.remainder by 2^24, ft.convert, ft.scale by 2^-24.
  }];
  let arguments = (ins Ft_Tensor:$rng, I64Attr:$stream);
  let results = (outs Ft_Tensor:$result);
  let assemblyFormat = "$rng `stream` $stream attr-dict `:` type($rng) `->` type($result)";
}

def Ft_ReduceOp : Ft_Primitive<"reduce", [Extents], [], ["getFlops"]> {
  let summary = "The sum, the maximum or the minimum over the dimensions `dims`, which the result lacks";
  let description = [{
    `kind` is "sum", "max" or "min"; `dims` are ascending. Sums are in f32 on 64 lanes that a tree joins, and rounded from there to the type. A maximum is NaN where an element is; its
    gradient is shared by the elements that have it (torch.amax).
  }];
  let arguments = (ins Ft_Tensor:$x, StrAttr:$kind, DenseI64ArrayAttr:$dims);
  let results = (outs Ft_Tensor:$result);
  let assemblyFormat = "$kind $x `over` $dims attr-dict `:` type($x) `->` type($result)";
  // The sum over the leading dimensions that `suffix` lacks: the gradient of what was repeated over them.
  let builders = [OpBuilder<(ins "::mlir::RankedTensorType":$suffix, "::mlir::Value":$x)>];
}

def Ft_DotOp : Ft_Primitive<"dot", [Extents], [], ["getFlops", "getModelFlops"]> {
  let summary = "Matrix products side by side: [..., M, K] times [..., K, N]";
  let description = [{
    a and b have the same leading dimensions, a product for each of their elements. With `transpose_a` a is [..., K, M], with
    `transpose_b` b is [..., N, K]. Where b is one matrix for all rows of a, ft.matmul is what is meant.
  }];
  let arguments = (ins Ft_FloatTensor:$a, Ft_FloatTensor:$b, UnitAttr:$transpose_a, UnitAttr:$transpose_b);
  let results = (outs Ft_FloatTensor:$result);
  let assemblyFormat = [{
    $a `,` $b (`transpose_a` $transpose_a^)? (`transpose_b` $transpose_b^)? attr-dict `:` type($a) `,` type($b) `->` type($result)
  }];
}

#endif // FT_PRIMITIVE_OPS
