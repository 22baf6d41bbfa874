// What hardware does for a thread of a GPU, as calls of functions.
#pragma once

#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"

namespace ft::compiler::testing {

// Calls of NVVM's intrinsics become calls of ft_gpu_thread, ft_gpu_block, ft_gpu_barrier and ft_gpu_shuffle,
// each place with a number of its own, and shared memory what ft_gpu_shared returns. For an entry there is a
// function with kCallSuffix behind its name, which takes an array of its parameters. bf16 is rounded in
// integers, since a host's instruction for it may lose subnormal numbers. With `watched`, ft_gpu_access is
// told of every access. An error for intrinsics that are not among these.
inline constexpr const char* kCallSuffix = ".call";
llvm::Error replaceIntrinsics(llvm::Module& module, bool watched);

// Of watched kernels in global memory, in bytes, since this was asked for last.
struct Traffic {
  uint64_t read = 0, written = 0;
};
Traffic takeTraffic();

// The functions, by name.
struct HostFunction {
  const char* name;
  void* address;
};
llvm::ArrayRef<HostFunction> hostFunctions();

}  // namespace ft::compiler::testing
