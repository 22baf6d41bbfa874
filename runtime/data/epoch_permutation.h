// Shuffling without a list: a permutation of 0 ... n - 1 that is computed, not stored.
#pragma once

#include <cstdint>

namespace ft {

// For every epoch a permutation of [0, n) from the seed: a four-round Feistel network over the smallest even
// number of bits that holds n, Philox as its round function, walking the cycle until the value falls below n
// (Black and Rogaway, "Ciphers with arbitrary finite domains", 2002). Fewer than 4 walks are expected for n
// > 1.
class EpochPermutation {
 public:
  // n >= 1. `family` (below kMaxFamilies) tells permutations apart that are drawn from one seed.
  EpochPermutation(int64_t n, uint64_t seed, uint32_t family = 0);

  static constexpr uint32_t kMaxFamilies = 1 << 21;

  // The element at `position` (in [0, n)) of `epoch` (>= 0).
  int64_t At(int64_t epoch, int64_t position) const;

 private:
  uint64_t n_;
  uint64_t seed_;
  uint32_t stream_;
  int half_bits_;  // the network works on 2 * half_bits_ bits
};

}  // namespace ft
