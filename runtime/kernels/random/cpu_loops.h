// Random numbers from Philox, many at a time.
#pragma once

#include <cstdint>

#include "runtime/backends/cpu/loops.h"
#include "runtime/backends/cpu/simd/element_type.h"

namespace ft::cpu {

struct DrawArgs {
  uint64_t seed;
  uint32_t stream;
  uint32_t step;
  float scale;  // standard deviation, or bound
};

// Who draws, as in runtime/base/philox.h: element i of the tensor is element first + i of the stream.
struct DropoutArgs {
  uint64_t seed;
  uint32_t stream;
  uint32_t step;
  uint64_t first;
  uint32_t threshold;  // kept when the upper 24 bits of the element's word are at least this
  float factor;        // of what is kept
};

struct RoundingArgs {
  uint64_t seed;
  uint32_t stream;
  uint32_t step;
};

struct RandomLoops {
  // result[j] = scale * z(element_begin + j) for j < n, where z(e) is the standard normal number of element
  // e: with w the words of Philox block e / 4 and u(w) = (w + 1) 2^-32, words (0, 1) make elements 4 k and 4
  // k + 1,
  //   sqrt(-2 ln u(w0)) cos(2 pi w1 2^-32)   and   sqrt(-2 ln u(w0)) sin(2 pi w1 2^-32),
  // and words (2, 3) elements 4 k + 2 and 4 k + 3 (G. Box, M. Muller, 1958), in f32, within 4 ulp of the
  // largest factor. element_begin is a multiple of 4.
  void (*normal)(const DrawArgs&, float* result, int64_t element_begin, int64_t n);
  // result[j] = scale * (2^-23 k - 1) for j < n, with k the upper 24 bits of the word of element
  // element_begin
  // + j, a multiple of 4 and more: evenly in [-scale, scale).
  void (*uniform)(const DrawArgs&, float* result, int64_t element_begin, int64_t n);
  // r[j] for j < n: the bf16 toward 0 from x[j] or, with a probability of their distance in 2^-16 of the gap,
  // the next one away from 0, by the upper 16 bits of the word of element element_begin + j, a multiple of 4
  // and more. Infinities stay, NaN is as in Store (element.h).
  void (*round_bf16)(const RoundingArgs&, const float* x, uint16_t* r, int64_t element_begin, int64_t n);
};

FT_DECLARE_FOR_EVERY_ISA(RandomLoops, kRandom)

}  // namespace ft::cpu
