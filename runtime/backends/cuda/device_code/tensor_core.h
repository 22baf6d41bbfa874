// What a warp does with tensor cores and the copies that feed them, of elements of 16 bits. A GPU's own
// instructions (PTX ISA: ldmatrix, mma.m16n8k16, cp.async; from compute capability 8.0 on); the stand-in for
// the hardware has the same functions.
//
// Of a product of 16 x 8 lane l has four sums: sums[e] lies in row l / 4 + 8 (e / 2), column 2 (l % 4) + e
// % 2.
#pragma once

#include "runtime/backends/cuda/device_code/element.h"

namespace ft::cuda {

#if defined(__CUDACC__)

__device__ __forceinline__ uint32_t SharedAddress(const void* address) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(address));
}

// Four matrices of 8 x 8 elements in shared memory: lane l says where row l % 8 of matrix l / 8 lies, a
// multiple of 16 bytes. words[m] gets the elements 2 (l % 4) and 2 (l % 4) + 1 of row l / 4 of matrix m. All
// lanes take part.
__device__ __forceinline__ void LoadMatrices(const void* row, uint32_t (&words)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(SharedAddress(row))
               : "memory");
}

// The same of transposed matrices: words[m] gets the elements l / 4 of rows 2 (l % 4) and 2 (l % 4) + 1.
__device__ __forceinline__ void LoadTransposed(const void* row, uint32_t (&words)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(SharedAddress(row))
               : "memory");
}

// sums += a b of T, with a [16, 16] as LoadMatrices gives it of its quarters (upper left, lower left, upper
// right, lower right) and b [16, 8] as it gives b transposed, in halves (of 8 rows of b). Products are exact,
// sums f32.
template <typename T>
__device__ __forceinline__ void MultiplyAdd(float (&sums)[4], const uint32_t (&a)[4], uint32_t b_upper,
                                            uint32_t b_lower);
template <>
__device__ __forceinline__ void MultiplyAdd<BF16>(float (&sums)[4], const uint32_t (&a)[4], uint32_t b_upper,
                                                  uint32_t b_lower) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b_upper), "r"(b_lower));
}
template <>
__device__ __forceinline__ void MultiplyAdd<F16>(float (&sums)[4], const uint32_t (&a)[4], uint32_t b_upper,
                                                 uint32_t b_lower) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b_upper), "r"(b_lower));
}

// Begins to copy 16 bytes to shared memory, or zeros where they are not `there`; both addresses are multiples
// of 16.
__device__ __forceinline__ void BeginCopy(void* to, const void* from, bool there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(SharedAddress(to)), "l"(from),
               "r"(there ? 16 : 0)
               : "memory");
}

// Until the copies that this thread began are done. Others see them behind a barrier.
__device__ __forceinline__ void FinishCopies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

#endif  // otherwise the stand-in's

// Two floats, rounded, in one word: the first in its lower half.
template <typename T>
__device__ __forceinline__ uint32_t PackPair(float first, float second) {
  return FromFloat<T>(first).bits | static_cast<uint32_t>(FromFloat<T>(second).bits) << 16;
}

}  // namespace ft::cuda
