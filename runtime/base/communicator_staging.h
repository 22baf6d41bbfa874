// What a communicator between GPUs takes of the memory of the device for its own use.
#pragma once

#include <cstddef>

namespace ft {

// Bytes of each: a word for barriers; parts of what is reduced, where sums are in the order of ranks.
inline constexpr size_t kBarrierStaging = 256;
inline constexpr size_t kDeterministicStaging = size_t{32} << 20;

}  // namespace ft
