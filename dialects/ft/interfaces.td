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
         "::mlir::ValueRange":$accumulators, "::llvm::SmallVectorImpl<bool> &":$accumulated)>
  ];
}

def CostOpInterface : OpInterface<"CostOpInterface"> {
  let description = [{
    The op knows what it costs. Multiply-add counts as two FLOPs.
  }];
  let cppNamespace = "::mlir::ft";
  let methods = [
    InterfaceMethod<"Floating point operations of one execution.", "uint64_t", "getFlops", (ins), "", [{ return 0; }]>,
    InterfaceMethod<"Bytes read and written, each operand and result once.", "uint64_t", "getBytes", (ins), "", [{
      return ::mlir::ft::bytesOfOperandsAndResults($_op);
    }]>
  ];
}

def KernelOpInterface : OpInterface<"KernelOpInterface"> {
  let description = [{
    The op is executed by one kernel. Operands, results and inherent attributes become those of the instruction, in order of
    declaration; an absent optional operand keeps its place.
  }];
  let cppNamespace = "::mlir::ft";
  let methods = [
    InterfaceMethod<"Name of the kernel in a backend's registry.", "::llvm::StringRef", "getKernelName", (ins), "", [{
      return $_op->getName().stripDialect();
    }]>,
    InterfaceMethod<"Bytes of scratch that the kernel wants; it must work with exactly these.", "uint64_t", "getWorkspaceBytes",
      (ins), "", [{ return 0; }]>,
    InterfaceMethod<[{
      Operand whose buffer result `index` must take over (the kernel accumulates into it); null when there is none.
    }], "::mlir::Value", "getTiedOperand", (ins "unsigned":$index), "", [{ return {}; }]>,
    InterfaceMethod<[{
      Operand whose buffer result `index` may take over when the operand dies here (elementwise kernels); null otherwise.
    }], "::mlir::Value", "getReusableOperand", (ins "unsigned":$index), "", [{ return {}; }]>,
    InterfaceMethod<"Computing it again costs less than keeping its results: the trait CheapToRecompute.", "bool",
      "isCheapToRecompute", (ins), "", [{ return ConcreteOp::template hasTrait<::mlir::ft::CheapToRecompute>(); }]>
  ];
}

#endif // FT_INTERFACES
