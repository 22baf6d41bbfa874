// Calls of composites: functions of a model, whose bodies are primitives.
#ifndef FT_COMPOSITE_OPS
#define FT_COMPOSITE_OPS

include "dialects/ft/op_base.td"

def Ft_CallOp : Ft_ComputeOp<"call", [DeclareOpInterfaceMethods<SymbolUserOpInterface>, Precision],
                             ["getKernelName", "getWorkspaceBytes", "isCheapToRecompute"], ["getFlops", "getModelFlops", "getBytes"]> {
  let summary = "A composite: what a function of the module computes, as one op";
  let description = [{
    `callee` is a private function with the attribute `ft.composite`, whose floats are all f32. It computes in f32 whatever the precision: operands are
    widened, results rounded once. Its derivative is a composite too, made once for all calls, that computes what it needs of the
    callee's values again; so of a call only operands that the derivative reads are kept for backward. `parameter_grads` are the numbers of results that
    are gradients of parameters, rounded to the type in which those are reduced; set by the compiler.
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, Variadic<Ft_Tensor>:$inputs, OptionalAttr<DenseI64ArrayAttr>:$parameter_grads);
  let results = (outs Variadic<Ft_Tensor>:$outputs);
  let assemblyFormat = [{
    $callee `(` $inputs `)` (`parameter_grads` $parameter_grads^)? attr-dict `:` functional-type($inputs, $outputs)
  }];
}

#endif // FT_COMPOSITE_OPS
