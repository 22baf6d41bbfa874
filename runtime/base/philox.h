// Philox 4x32-10, the counter-based generator of J. Salmon et al., "Parallel random numbers: as easy as 1, 2,
// 3" (SC 2011). A number depends on its key and counter alone, never on the order of calls, so slices,
// recomputation and prefetching cannot change it.
//
// Convention of this project: key = (seed low, seed high); counter = (element / 4 low, element / 4 high,
// stream, step); the element's word is element % 4. `stream` names who draws: a parameter or an op of the
// plan.
#pragma once

#include <array>
#include <cstdint>

namespace ft {

using PhiloxBlock = std::array<uint32_t, 4>;

inline PhiloxBlock Philox4x32(uint64_t seed, uint32_t stream, uint32_t step, uint64_t block) {
  uint32_t c0 = static_cast<uint32_t>(block), c1 = static_cast<uint32_t>(block >> 32), c2 = stream, c3 = step;
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
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
  return {c0, c1, c2, c3};
}

// Streams of random ops are this plus their attribute `stream` (1, 2, ...): above those of parameters, which
// are drawn once, by their place in the model.
inline constexpr uint32_t kFirstOpStream = 0x40000000u;

// Streams of stochastic rounding are this plus that place of the parameter, at the step that is applied.
inline constexpr uint32_t kFirstRoundingStream = 0x80000000u;

// The stream of tokens that are drawn when a text is continued: by the number of the text as the step, and
// the place of the token in it as the block.
inline constexpr uint32_t kTokenStream = 0xc0000000u;

// 24 bits -> [0, 1).
inline float PhiloxUniform(uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }

}  // namespace ft
