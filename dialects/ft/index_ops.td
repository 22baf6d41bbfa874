// Primitives that choose by integers: elements of rows, orders, counts, experts. Verifier, derivative and cost of all are in index_ops.cc.
#ifndef FT_INDEX_OPS
#define FT_INDEX_OPS

include "dialects/ft/primitive_ops.td"

def Ft_GatherElementsOp : Ft_Primitive<"gather_elements", [Extents, CheapToRecompute, MovesElements]> {
  let summary = "Elements of each row by their ids: result[..., k] = x[..., ids[..., k]]";
  let description = [{
    Rows are those of the last dimension (torch.gather along it). An id that names no element gives 0.
  }];
  let arguments = (ins Ft_Tensor:$x, Ft_TokenTensor:$ids);
  let results = (outs Ft_Tensor:$result);
  let assemblyFormat = "$x `,` $ids attr-dict `:` type($x) `,` type($ids) `->` type($result)";
}

def Ft_ScatterAddElementsOp : Ft_Primitive<"scatter_add_elements", [Extents]> {
  let summary = "Rows of zeros to which elements are added by their ids: result[..., ids[..., k]] += x[..., k]";
  let description = [{
    The transpose of gather_elements. Elements of one id are summed in order, in f64; an id that names no
    element of the row is left out.
  }];
  let arguments = (ins Ft_FloatTensor:$x, Ft_TokenTensor:$ids);
  let results = (outs Ft_FloatTensor:$result);
  let assemblyFormat = "$x `,` $ids attr-dict `:` type($x) `,` type($ids) `->` type($result)";
}

def Ft_CumsumOp : Ft_Primitive<"cumsum", [ExtentsOfResult, CheapToRecompute], [], ["getFlops"]> {
  let summary = "Sums of each row up to and including an element, or with `reverse` from it on";
  let description = [{ Along the last dimension, of numbers (not of i1); floats are summed in f64. }];
  let arguments = (ins Ft_Tensor:$x, UnitAttr:$reverse);
  let results = (outs Ft_Tensor:$result);
  let assemblyFormat = "$x (`reverse` $reverse^)? attr-dict `:` type($x) `->` type($result)";
}

def Ft_ArgsortOp : Ft_Primitive<"argsort", [Extents], [], ["getFlops"]> {
  let summary = "Ids of the elements of each row in ascending or descending order, or of the first of them";
  let description = [{
    Along the last dimension, of numbers (not of i1); the result is as wide as wanted: with `descending` and K columns the ids of the K largest (torch.topk; the
    elements are those of ft.gather_elements). Of equal elements the first comes first; NaN is above everything.
  }];
  let arguments = (ins Ft_Tensor:$x, UnitAttr:$descending);
  let results = (outs Ft_TokenTensor:$result);
  let assemblyFormat = "$x (`descending` $descending^)? attr-dict `:` type($x) `->` type($result)";
}

def Ft_HistogramOp : Ft_Primitive<"histogram", [ExtentsOfResult], [], ["getFlops"]> {
  let summary = "How often each of 0, 1, 2, ... is among the ids";
  let description = [{ As many as the result has elements (torch.bincount); an id beyond is not counted. }];
  let arguments = (ins Ft_TokenTensor:$ids);
  let results = (outs Ft_TokenTensor:$result);
  let assemblyFormat = "$ids attr-dict `:` type($ids) `->` type($result)";
}

def Ft_GroupedDotOp : Ft_Primitive<"grouped_dot", [Extents], [], ["getFlops", "getModelFlops"]> {
  let summary = "Groups of rows, each times a matrix of its own";
  let description = [{
    x is [rows, K] and w [groups, K, N], or [groups, N, K] with `transpose_b`; the rows of group g are those from ends[g - 1] (0 for the
    first) to ends[g], and result[row] = x[row] w[g]. Rows behind the last end give 0. Ends ascend; each is taken as no less than the
    one before and no more than the rows.
  }];
  let arguments = (ins Ft_FloatTensor:$x, Ft_FloatTensor:$w, Ft_TokenTensor:$ends, UnitAttr:$transpose_b);
  let results = (outs Ft_FloatTensor:$result);
  let assemblyFormat = [{
    $x `,` $w `,` $ends (`transpose_b` $transpose_b^)? attr-dict `:` type($x) `,` type($w) `,` type($ends) `->` type($result)
  }];
}

def Ft_GroupedDotGradOp : Ft_ComputeOp<"grouped_dot_grad", [Precision], ["getKernelOperands", "getTiedOperand", "takeAccumulator"], ["getFlops", "getModelFlops"]> {
  let summary = "Gradient of the matrices of grouped_dot: acc (or 0) + for each group the rows of x, transposed, times those of dy";
  let description = [{ x is [rows, K], dy [rows, N], dw [groups, K, N]. A group without rows adds nothing. }];
  let arguments = (ins Ft_FloatTensor:$x, Ft_FloatTensor:$dy, Ft_TokenTensor:$ends, Optional<Ft_FloatTensor>:$acc);
  let results = (outs Ft_FloatTensor:$dw);
  let assemblyFormat = "$x `,` $dy `,` $ends (`into` $acc^)? attr-dict `:` functional-type(operands, results)";
}

#endif // FT_INDEX_OPS
