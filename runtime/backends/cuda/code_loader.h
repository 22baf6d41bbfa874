// Code that the compiler made for clusters, as an interface: one implementation gives it to CUDA's runtime,
// tests have one that runs it on the host.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/backends/cuda/driver.h"
#include "runtime/base/cluster.h"

namespace ft::cuda {

// Code on the current device.
class LoadedCode {
 public:
  virtual ~LoadedCode() = default;
  // Enqueues its entries, which are given `addresses` (compiler/codegen/ptx_kernel.h); neither allocates nor
  // waits. `spaces`: how many times the body is run, on whole values that lie one behind the other; more than
  // once where it is elementwise, of whole blocks of threads. A cudaError_t as int.
  virtual int Launch(absl::Span<void* const> addresses, int64_t spaces, StreamHandle stream) const = 0;
};

class CodeLoader {
 public:
  virtual ~CodeLoader() = default;
  // `code` is PTX. Errors: Internal, with what the driver's compiler says.
  virtual absl::StatusOr<std::shared_ptr<const LoadedCode>> Load(const ClusterCode& code) = 0;
};

}  // namespace ft::cuda
