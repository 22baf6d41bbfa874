// The generator of runtime/base/philox.h on the device: the same words from the same key and counter.
#pragma once

#include "runtime/backends/cuda/device_code/gpu.h"

namespace ft::cuda {

// Who draws, as in runtime/base/philox.h.
struct PhiloxKey {
  uint64_t seed;
  uint32_t stream;
  uint32_t step;
};

struct PhiloxWords {
  uint32_t at[4];
};

// Words of elements 4 block ... 4 block + 3.
__device__ __forceinline__ PhiloxWords Philox(const PhiloxKey& key, uint64_t block) {
  uint32_t c0 = static_cast<uint32_t>(block), c1 = static_cast<uint32_t>(block >> 32);
  uint32_t c2 = key.stream, c3 = key.step;
  uint32_t k0 = static_cast<uint32_t>(key.seed), k1 = static_cast<uint32_t>(key.seed >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * c0, p1 = uint64_t{0xCD9E8D57u} * c2;
    c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<uint32_t>(p1);
    c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<uint32_t>(p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

// words.at[i], without an array in memory.
__device__ __forceinline__ uint32_t Word(const PhiloxWords& words, uint32_t i) {
  const uint32_t even = i < 2 ? words.at[0] : words.at[2], odd = i < 2 ? words.at[1] : words.at[3];
  return i % 2 == 0 ? even : odd;
}

}  // namespace ft::cuda
