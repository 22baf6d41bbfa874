// Words of runtime/base/philox.h, many at a time. Included only by loops.
#pragma once

#include <cstdint>

#include "runtime/backends/cpu/simd/vector_math.h"

namespace ft::cpu::FT_ISA {

// runtime/base/philox.h for consecutive blocks, one array per word.
template <int kBlocks, typename Args>
FT_INLINE void PhiloxBlocks(const Args& args, uint64_t first_block, uint32_t words[4][kBlocks]) {
#pragma omp simd
  for (int i = 0; i < kBlocks; ++i) {
    const uint64_t block = first_block + static_cast<uint64_t>(i);
    uint32_t c0 = static_cast<uint32_t>(block), c1 = static_cast<uint32_t>(block >> 32);
    uint32_t c2 = args.stream, c3 = args.step;
    uint32_t k0 = static_cast<uint32_t>(args.seed), k1 = static_cast<uint32_t>(args.seed >> 32);
#pragma GCC unroll 10
    for (int round = 0; round < 10; ++round) {
      const uint64_t p0 = uint64_t{0xD2511F53u} * c0;
      const uint64_t p1 = uint64_t{0xCD9E8D57u} * c2;
      c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
      c1 = static_cast<uint32_t>(p1);
      c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
      c3 = static_cast<uint32_t>(p0);
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    words[0][i] = c0;
    words[1][i] = c1;
    words[2][i] = c2;
    words[3][i] = c3;
  }
}

}  // namespace ft::cpu::FT_ISA
