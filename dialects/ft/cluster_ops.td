// Clusters: what runs as one kernel that the compiler makes. They appear after all decisions on the graph (--ft-form-clusters).
#ifndef FT_CLUSTER_OPS
#define FT_CLUSTER_OPS

include "dialects/ft/op_base.td"

def Ft_ClusterOp : Ft_ComputeOp<"cluster", [DeclareOpInterfaceMethods<SymbolUserOpInterface>],
                                ["getWorkspaceBytes", "getReusableOperand"], ["getFlops"]> {
  let summary = "Ops that run as one kernel: those of a function of the module";
  let description = [{
    `body` is a private function with the attribute `ft.cluster`, of primitives over one space of rows and columns. Which ops are in a cluster changes
    no bit: in it every value is rounded to its type as outside. `partial_bytes` is the scratch of results that are reduced over rows, of a CPU and of
    a GPU; `in_place` has for each result the operand whose buffer it may take over, or -1. Both follow from the body. `streams` are those of the
    generator for the draws of the body, whose ft.random_bits have their numbers, 0, 1 ..., for streams.
  }];
  let arguments = (ins FlatSymbolRefAttr:$body, Variadic<Ft_Tensor>:$inputs, DenseI64ArrayAttr:$partial_bytes, DenseI64ArrayAttr:$in_place,
                       OptionalAttr<DenseI64ArrayAttr>:$streams);
  let results = (outs Variadic<Ft_Tensor>:$outputs);
  let assemblyFormat = [{
    $body `(` $inputs `)` `partial_bytes` $partial_bytes `in_place` $in_place (`streams` $streams^)? attr-dict `:` functional-type($inputs, $outputs)
  }];
}

#endif // FT_CLUSTER_OPS
