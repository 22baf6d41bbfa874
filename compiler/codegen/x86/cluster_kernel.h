// The loops of a cluster: entries `kernel` and `combine` of kernel.h as a module of func, scf, arith, math,
// vector and llvm.
//
// A row is walked once for each level of its reductions and once more for its results; elements in between
// are computed again from the inputs, and stay in registers. Columns go in steps of 64, which are four
// vectors of 16 lanes, so that column i always meets lane i mod 64. The end of a row that is no multiple of
// 64 is code of its own.
//
// Where there are sums over few rows and nothing else, columns are walked instead, by the entry `combine`
// alone: sums stay in registers, in the same order.
#pragma once

#include "compiler/codegen/kernel.h"
#include "mlir/IR/BuiltinOps.h"

namespace ft::compiler {

mlir::OwningOpRef<mlir::ModuleOp> buildClusterKernel(mlir::MLIRContext &context, const ClusterBody &body,
                                                     X86Level level);

} // namespace ft::compiler
