// Instructions as somebody might forge them: a good one with a few numbers changed.
#pragma once

#include <cstdint>

#include "test/fuzz/seeds.h"

namespace ft::fuzz {

// The same numbers on every machine. (S. Vigna, "splitmix64", public domain.)
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  uint64_t Below(uint64_t limit) { return Next() % limit; }
  bool OneIn(uint64_t n) { return Below(n) == 0; }
  template <typename List>
  auto& Pick(List& list) {
    return list[Below(list.size())];
  }

 private:
  uint64_t state_;
};

// One to four changes: of attributes (values at the ends of their types, and those that wrap round when they
// are multiplied; other types; left out), of extents (of one tensor, or of all tensors that have it), types,
// places, numbers of operands, the workspace.
void Mutate(Random& random, Seed& seed);

}  // namespace ft::fuzz
