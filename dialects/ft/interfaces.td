// Interfaces of the ft dialect: what a pass may ask an op, so that no pass switches over names.
#ifndef FT_INTERFACES
#define FT_INTERFACES

include "mlir/IR/OpBase.td"

def DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let description = [{
    The op has a rule of reverse-mode differentiation.
  }];
  let cppNamespace = "::mlir::ft";
  let methods = [
    InterfaceMethod<[{
      Builds the gradient ops. `resultGrads[i]` is the gradient of result i, or null when nothing depends on it.
      `needed[j]` says whether the gradient of operand j is wanted. Returns one value per operand, null where there is
      none. `accumulators[j]`, if not null, is a sum of earlier contributions to operand j's gradient: a rule may
      pass it on to a gradient op that has an `acc` operand and report so in `accumulated[j]`; the caller adds otherwise.
    }], "::llvm::SmallVector<::mlir::Value>", "buildGradient",
    (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$resultGrads, "::llvm::ArrayRef<bool>":$needed,
         "::mlir::ValueRange":$accumulators, "::llvm::SmallVectorImpl<bool> &":$accumulated)>,
    InterfaceMethod<"Its results do not change, or jump, with its operands (sign, stop_gradient): nothing flows back through it.", "bool",
      "isFlat", (ins), "", [{ return false; }]>
  ];
}

def CostOpInterface : OpInterface<"CostOpInterface"> {
  let description = [{
    The op knows what it costs. Multiply-add counts as two FLOPs.
  }];
  let cppNamespace = "::mlir::ft";
  let methods = [
    InterfaceMethod<"Floating point operations of one execution.", "uint64_t", "getFlops", (ins), "", [{ return 0; }]>,
    InterfaceMethod<[{
      Those of them that model FLOPs count: matrix products that the result needs, without what the kernel computes a
      second time and without all elementwise work.
    }], "uint64_t", "getModelFlops", (ins), "", [{ return 0; }]>,
    InterfaceMethod<"Bytes read and written, each operand and result once.", "uint64_t", "getBytes", (ins), "", [{
      return ::mlir::ft::bytesOfOperandsAndResults($_op);
    }]>
  ];
}

def RandomOpInterface : OpInterface<"RandomOpInterface"> {
  let description = [{
    The op may draw random numbers, from streams of the generator. In a composite streams are named 0, 1, ..., and every call says which they are.
  }];
  let cppNamespace = "::mlir::ft";
  let methods = [
    InterfaceMethod<"Its streams; none where it draws nothing.", "::llvm::SmallVector<int64_t>", "getDrawnStreams", (ins)>,
    InterfaceMethod<"Other ones, as many.", "void", "setDrawnStreams", (ins "::llvm::ArrayRef<int64_t>":$streams)>,
    InterfaceMethod<"It drops elements, which evaluation does not.", "bool", "hasDropout", (ins), "", [{ return false; }]>,
    InterfaceMethod<"Takes dropout out of an op that has it, and the op out of the graph where it does nothing else; not out of what it calls.", "void",
      "removeDropout", (ins), "", [{ return; }]>
  ];
}

def CompositeOpInterface : OpInterface<"CompositeOpInterface"> {
  let description = [{
    The op is what a body of other ops does with its operands.
  }];
  let cppNamespace = "::mlir::ft";
  let methods = [
    InterfaceMethod<"Builds the body for `operands`, which have the shapes of the op's and f32 for floats; one value for each result.",
      "::llvm::SmallVector<::mlir::Value>", "buildBody", (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$operands)>
  ];
}

def ShorthandOpInterface : OpInterface<"ShorthandOpInterface"> {
  let description = [{
    The op is short for others, which take its place before all else.
  }];
  let cppNamespace = "::mlir::ft";
  let methods = [
    InterfaceMethod<"Builds them; one value for each result. What ops that are alike share is built once, at the beginning of the function.",
      "::llvm::SmallVector<::mlir::Value>", "expand", (ins "::mlir::OpBuilder &":$builder)>
  ];
}

def KernelOpInterface : OpInterface<"KernelOpInterface"> {
  let description = [{
    The op is executed by one kernel. Operands, results and inherent attributes become those of the instruction, in order of
    declaration; an absent optional operand keeps its place, an absent flag is false.
  }];
  let cppNamespace = "::mlir::ft";
  let methods = [
    InterfaceMethod<"Name of the kernel in a backend's registry.", "::llvm::StringRef", "getKernelName", (ins), "", [{
      return $_op->getName().stripDialect();
    }]>,
    InterfaceMethod<[{
      Operands in the order of their declaration, null for an optional one that is absent. The default is right where all are always there
      and for ops with AttrSizedOperandSegments. MLIR gives an op with a single optional operand no such sizes: it says its operands.
    }], "::llvm::SmallVector<::mlir::Value>", "getKernelOperands", (ins), "", [{ return ::mlir::ft::operandsBySegment($_op); }]>,
    InterfaceMethod<"Bytes of scratch that the kernel of a device wants; it must work with exactly these.", "uint64_t",
      "getWorkspaceBytes", (ins "::ft::DeviceClass":$device), "", [{ return 0; }]>,
    InterfaceMethod<[{
      Operand whose buffer result `index` must take over (the kernel accumulates into it); null when there is none.
    }], "::mlir::Value", "getTiedOperand", (ins "unsigned":$index), "", [{ return {}; }]>,
    InterfaceMethod<[{
      Has result `index` begin with `acc`, which has its type, as the operand that it is tied to; false where the op has no such operand, or one is there already.
    }], "bool", "takeAccumulator", (ins "unsigned":$index, "::mlir::Value":$acc), "", [{ return false; }]>,
    InterfaceMethod<[{
      Operand whose buffer result `index` may take over when the operand dies here (elementwise kernels, and those of
      whole rows that read a row before they write it); null otherwise.
    }], "::mlir::Value", "getReusableOperand", (ins "unsigned":$index), "", [{ return {}; }]>,
    InterfaceMethod<"Inherent attributes that the kernel has only where the op has them.", "::llvm::ArrayRef<::llvm::StringRef>",
      "getOptionalAttributes", (ins), "", [{ return {}; }]>,
    InterfaceMethod<"Computing it again costs less than keeping its results: the trait CheapToRecompute.", "bool",
      "isCheapToRecompute", (ins), "", [{ return ConcreteOp::template hasTrait<::mlir::ft::CheapToRecompute>(); }]>,
    InterfaceMethod<"Its results may be computed again instead of kept: not so with the trait FusedWithGradient.", "bool",
      "isRecomputable", (ins), "", [{ return !ConcreteOp::template hasTrait<::mlir::ft::FusedWithGradient>(); }]>,
    InterfaceMethod<"What recomputation by class calls the op: attention, mlp, norms; empty for others.", "::llvm::StringRef",
      "getOpClass", (ins), "", [{ return ::mlir::ft::opClassOf($_op->getName()); }]>
  ];
}

def PrecisionOpInterface : OpInterface<"PrecisionOpInterface"> {
  let description = [{
    The op has float results whose element type need not be that of the activations. Without it all results of rank 1 and more have
    the type of the activations; scalars are f32 always.
  }];
  let cppNamespace = "::mlir::ft";
  let methods = [
    InterfaceMethod<"What decides the element type of result `index`.", "::mlir::ft::ElementRole", "getElementRole",
      (ins "unsigned":$index)>
  ];
}

def MicroStepSumOpInterface : OpInterface<"MicroStepSumOpInterface"> {
  let description = [{
    The op adds the part of one micro-step, x, to a sum over micro-steps. Where it does so `in_place`, x is a flat gradient that lies in the place
    of the sum, and what was packed into it has been added there already.
  }];
  let cppNamespace = "::mlir::ft";
  let methods = [
    InterfaceMethod<"The part of this micro-step.", "::mlir::Value", "getX">,
    InterfaceMethod<"Name of the sum.", "::llvm::StringRef", "getName">,
    InterfaceMethod<"Whether x lies where the sum does.", "bool", "getInPlace">,
    InterfaceMethod<"Has x lie where the sum does.", "void", "setInPlace", (ins "bool":$in_place)>
  ];
  let verify = [{ return ::mlir::ft::verifyInPlace($_op); }];
}

def ExtentOpInterface : OpInterface<"ExtentOpInterface"> {
  let description = [{
    The op knows which extents of its operands and results are one and the same, so that a model can be given another batch. What it sums over
    is not said here: ops that sum are known by what they do.
  }];
  let cppNamespace = "::mlir::ft";
  let methods = [
    InterfaceMethod<"Says so. The default: operands whose shape ends that of the first result are aligned with it.", "void", "relateExtents",
      (ins "::mlir::ft::ExtentRelations &":$relations), "", [{ ::mlir::ft::alignOperands($_op, relations); }]>
  ];
}

#endif // FT_INTERFACES
