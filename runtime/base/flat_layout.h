// Numbers of the flat layout that compiler and kernels have to agree on.
#pragma once

#include <cstdint>

namespace ft {

// Every parameter and every slice begins at a multiple of this many elements of its unit's flat buffer, and a
// sum over all elements is made of whole blocks: it does not see units or slices (docs/decisions).
inline constexpr int64_t kBlockElements = 1024;

// Elements [begin, end) of a unit's flat buffer: those of one parameter.
struct ParameterRange {
  int64_t begin = 0;
  int64_t end = 0;
  bool decays = false;  // weight decay applies
  uint32_t number = 0;  // the parameter's place in the model, which its random numbers have (philox.h)
};

// Weights that are rounded stochastically behind the code of an update are so many at a time in f32 on a GPU.
inline constexpr int64_t kRoundingElements = int64_t{1} << 20;

// i64 words of the exact sum of ft.sum_squares: 20 of the fixed-point number, one that counts what was not
// finite.
inline constexpr int64_t kAccumulatorWords = 21;

}  // namespace ft
