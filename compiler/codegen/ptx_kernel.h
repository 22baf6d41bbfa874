// PTX for clusters: what goes in, what comes out, how it is launched.
//
// In: a cluster body, as for kernel.h. Out: the text of a PTX module for compute capability 8.0 and newer,
// which calls nothing. It has an entry
//
//   kernel(pointer ...)    and, where there are outputs over rows,    combine(pointer ...)
//
// whose parameters are the addresses of the inputs of the body, its results, and a buffer of partial
// results for every output over rows, in this order, each aligned to 16 bytes, and the
// streams that kernel.h has. `combine` has the same parameters and runs after `kernel`. Each is launched with
// the extents given here, and no others, but for the kernel of a flat space (ClusterBody::IsFlat) that fills
// its blocks, 8 elements a thread: with n times as many blocks it computes n such spaces, one behind the
// other. Shared memory is static, part of the module. Results may be in the buffers of inputs as kernel.h
// says.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/cluster.h"
#include "llvm/Support/Error.h"

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
  int64_t partialBytes = 0; // of each buffer of partial results
};

struct PtxKernel {
  PtxInterface interface;
  std::string ptx;
};

/// The same bytes for the same body, always. `body` is one that CheckClusterBody takes.
llvm::Expected<PtxKernel> generatePtx(const ClusterBody &body);

/// That of generatePtx, without the code.
PtxInterface ptxInterfaceOf(const ClusterBody &body);

} // namespace ft::compiler
