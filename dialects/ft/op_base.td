// What the ops of the graph level are made of: classes, traits, interfaces.
#ifndef FT_OP_BASE
#define FT_OP_BASE

include "mlir/IR/OpBase.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "dialects/ft/dialect.td"
include "dialects/ft/interfaces.td"

class Ft_Op<string mnemonic, list<Trait> traits = []> : Op<Ft_Dialect, mnemonic, traits>;

// Some results have another element type than the activations.
def Precision : DeclareOpInterfaceMethods<PrecisionOpInterface>;

// Ft_ComputeOp: pure, costed, one kernel.
class Ft_ComputeOp<string mnemonic, list<Trait> traits = [], list<string> kernelMethods = [], list<string> costMethods = ["getFlops"]>
    : Ft_Op<mnemonic, !listconcat([Pure, DeclareOpInterfaceMethods<CostOpInterface, costMethods>,
                                   DeclareOpInterfaceMethods<KernelOpInterface, kernelMethods>], traits)> {
  let hasVerifier = 1;
}

// Few FLOPs for the bytes of its result: computing it again costs less than keeping it.
def CheapToRecompute : NativeOpTrait<"CheapToRecompute"> { let cppNamespace = "::mlir::ft"; }

// Computes part of the gradient along with its results, so it runs once.
def FusedWithGradient : NativeOpTrait<"FusedWithGradient"> { let cppNamespace = "::mlir::ft"; }

// Only moves elements, so its results have the element type of its operands.
def MovesElements : NativeOpTrait<"MovesElements"> { let cppNamespace = "::mlir::ft"; }

// Classes of ops for recomputation (--remat=ops:CLASS).
def OfAttention : NativeOpTrait<"OfAttention"> { let cppNamespace = "::mlir::ft"; }
def OfMlp : NativeOpTrait<"OfMlp"> { let cppNamespace = "::mlir::ft"; }
def OfNorms : NativeOpTrait<"OfNorms"> { let cppNamespace = "::mlir::ft"; }

// May draw random numbers.
def Random : DeclareOpInterfaceMethods<RandomOpInterface>;
// As what it calls does.
def RandomCall : DeclareOpInterfaceMethods<RandomOpInterface, ["hasDropout"]>;
// May drop elements with them.
def RandomDropout : DeclareOpInterfaceMethods<RandomOpInterface, ["hasDropout", "removeDropout"]>;

// Extents are those of the first result, or as the op says.
def ExtentsOfResult : DeclareOpInterfaceMethods<ExtentOpInterface>;
def Extents : DeclareOpInterfaceMethods<ExtentOpInterface, ["relateExtents"]>;

def Differentiable : DeclareOpInterfaceMethods<DifferentiableOpInterface>;

#endif // FT_OP_BASE
