// The body of a cluster, of a function of primitives.
//
// Every result is written in the order of a space of rows and columns; what its ops read is found by walking
// back from there with an index map (index_map.h). So repeating, slicing, transposing and reshaping are
// matters of where an input is read, and what is needed at two places is computed at both. Columns are what
// the reductions of the body reduce; rows that are reduced may only be returned. Parts of a returned
// ft.concat are written where they lie, and may be of several sizes; one that is computed on is read part by
// part. Where that needs it, rows of a few times 64 columns are computed on in pieces of 64 side by side,
// which makes no other bit: a lane of a reduction has the same columns. A body without reductions has the
// longest columns that its inputs allow; one whose values all have the same places is flat.
//
// Refused, with one error at the op: reductions of other extents than the columns, or of dimensions that are
// not beside each other; what combines rows otherwise (products, sorting, padding ...); results that are no
// whole rows and columns and not one number a row; more values, inputs or results than a body may have.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "runtime/base/cluster.h"

namespace ft::compiler {

/// The arguments of `body` are the inputs, in their order. Streams of ft.random_bits are numbers of draws.
mlir::FailureOr<ClusterBody> clusterBodyOf(mlir::func::FuncOp body);

} // namespace ft::compiler
