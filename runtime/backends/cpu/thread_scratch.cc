#include "runtime/backends/cpu/thread_scratch.h"

#include <cstddef>

#include "runtime/kernels/matmul/cpu_loops.h"

namespace ft::cpu {

void* ThreadScratch() {
  alignas(64) static thread_local std::byte scratch[kScratchBytes];
  return scratch;
}

}  // namespace ft::cpu
