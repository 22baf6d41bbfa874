// Loops over dimensions, as device code is given them.
#pragma once

#include <cstdint>

namespace ft::cuda {

inline constexpr int kMostLoops = 8;

// The last loop is the innermost. Entries behind `rank` are 0.
struct Loops {
  int rank;
  int64_t dims[kMostLoops];
  int64_t strides[kMostLoops];  // in elements
};

}  // namespace ft::cuda
