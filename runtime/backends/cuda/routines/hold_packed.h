// Packs that a kernel computes and goes on working with.
#pragma once

#include "runtime/backends/cuda/routines/element.h"

namespace ft::cuda {

// Keeps a pack in registers as it lies in memory, two 16-bit elements in one: the compiler would hold each in
// a register of its own, and spill.
template <typename T, int kWidth>
__device__ __forceinline__ void HoldPacked(Pack<T, kWidth>& pack) {
#if defined(__CUDACC__)
  if constexpr (sizeof(T) == 2 && kWidth % 2 == 0) {
#pragma unroll
    for (int i = 0; i < kWidth; i += 2) {
      uint32_t word;
      __builtin_memcpy(&word, &pack.at[i], sizeof(word));
      asm("" : "+r"(word));
      __builtin_memcpy(&pack.at[i], &word, sizeof(word));
    }
  }
#else
  static_cast<void>(pack);
#endif
}

}  // namespace ft::cuda
