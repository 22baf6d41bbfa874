// The threads of a cluster: entries `kernel` and `combine` of ptx_kernel.h as a module of func, scf, arith,
// math, vector, llvm and nvvm.
//
// As for a CPU, packs of a row are visited once for each level of its reductions and once more for its
// results, and elements in between are computed again from the arguments. Where registers suffice, arguments
// are read once, before all else.
#pragma once

#include "compiler/codegen/ptx/thread_plan.h"
#include "compiler/codegen/ptx_kernel.h"
#include "mlir/IR/BuiltinOps.h"

namespace ft::compiler {

/// In `context`, which may be another than the body's.
mlir::OwningOpRef<mlir::ModuleOp> buildGpuKernel(mlir::MLIRContext &context, const ClusterBody &body);

} // namespace ft::compiler
