// PTX for clusters: what goes in, what comes out, how it is launched.
//
// In: a cluster body, as for kernel.h. Out: the text of a PTX module for compute capability 8.0 and newer,
// which calls nothing. It has an entry
//
//   kernel(pointer ...)    and, where results are reduced over rows,    combine(pointer ...)
//
// whose parameters are the addresses of the arguments of the body, its results, and a buffer of partial
// results for every result that is reduced over rows, in this order, each aligned to 16 bytes. `combine` has
// the same parameters and runs after `kernel`. Each is launched with the extents given here, and no others;
// shared memory is static, part of the module. Results may be in the buffers of arguments as kernel.h says.
#pragma once

#include <cstdint>
#include <string>

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ft::compiler {

/// All extents are along x.
struct GpuLaunch {
  int64_t blocks = 0; // 0: there is no such entry
  int64_t threads = 0;
  int64_t sharedBytes = 0; // static
  bool operator==(const GpuLaunch &) const = default;
};

/// What a caller has to know, which follows from the body alone.
struct PtxInterface {
  GpuLaunch kernel, combine;
  // Of each buffer of partial results, in the order of the results that are reduced over rows.
  llvm::SmallVector<int64_t> partialBytes;
};

struct PtxKernel {
  PtxInterface interface;
  std::string ptx;
};

/// The same bytes for the same body, always. Fails with one error, at the op, for what is no cluster body.
mlir::FailureOr<PtxKernel> generatePtx(mlir::func::FuncOp body);

/// That of generatePtx, without the code; fails for the same bodies.
mlir::FailureOr<PtxInterface> ptxInterfaceOf(mlir::func::FuncOp body);

} // namespace ft::compiler
