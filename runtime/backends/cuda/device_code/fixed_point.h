// The exact sum of non-negative doubles of runtime/backends/cpu/fixed_point.h, on the device: 20 words of 32
// bits, each in 64, and a count of what was not finite. A word takes 2^30 additions before carries are
// resolved: 2^40 elements, more than any buffer holds.
#pragma once

#include "runtime/backends/cuda/device_code/gpu.h"
#include "runtime/base/flat_layout.h"

namespace ft::cuda {

inline constexpr int kSumWords = 20;  // word w weighs 2^(32 w - 320)
inline constexpr int kNotFiniteWord = 20;
static_assert(kNotFiniteWord + 1 == kAccumulatorWords);
inline constexpr int kLowestExponent = 320;

__device__ __forceinline__ bool IsFinite(float x) { return (__float_as_uint(x) & 0x7FFFFFFFu) < 0x7F800000u; }

// Adds `value` >= 0 to words in shared or global memory, to which others add at the same time. Bits below
// 2^-320 do not occur in sums of squares of f32, whose lowest bit is 2^-298.
__device__ inline void AddExactly(double value, unsigned long long* words) {
  if (!(value < static_cast<double>(INFINITY))) {  // NaN too
    atomicAdd(words + kNotFiniteWord, 1ull);
    return;
  }
  if (value == 0.0) return;
  int exponent = 0;
  const double fraction = frexp(value, &exponent);  // in [1/2, 1)
  uint64_t mantissa = static_cast<uint64_t>(ldexp(fraction, 53));
  int position = exponent - 53 + kLowestExponent;  // value = mantissa * 2^(exponent - 53)
  if (position < 0) {                              // what is moved out is zero
    mantissa >>= -position;
    position = 0;
  }
  const int word = position / 32, shift = position % 32;
  const uint64_t mask = 0xFFFFFFFFu;
  // 53 bits moved by up to 31 span at most three words.
  const uint64_t low = (mantissa & mask) << shift, high = (mantissa >> 32) << shift;
  atomicAdd(words + word, static_cast<unsigned long long>(low & mask));
  atomicAdd(words + word + 1, static_cast<unsigned long long>((low >> 32) + (high & mask)));
  atomicAdd(words + word + 2, static_cast<unsigned long long>(high >> 32));
}

// Resolves carries: every word of the sum in [0, 2^32), the topmost excepted. By one thread.
__device__ inline void Normalize(int64_t* words) {
  int64_t carry = 0;
#pragma unroll
  for (int w = 0; w + 1 < kSumWords; ++w) {
    const int64_t word = static_cast<int64_t>(static_cast<uint64_t>(words[w]) + static_cast<uint64_t>(carry));
    carry = word >> 32;
    words[w] = word & int64_t{0xFFFFFFFF};
  }
  words[kSumWords - 1] =
      static_cast<int64_t>(static_cast<uint64_t>(words[kSumWords - 1]) + static_cast<uint64_t>(carry));
}

// The sum rounded once to the nearest double; infinity when a value was not finite.
__device__ inline double ToDouble(const int64_t* words) {
  if (words[kNotFiniteWord] != 0) return static_cast<double>(INFINITY);
  int64_t digits[kSumWords + 1];
  for (int w = 0; w < kSumWords; ++w) digits[w] = words[w];
  Normalize(digits);
  digits[kSumWords] = digits[kSumWords - 1] >> 32;
  digits[kSumWords - 1] &= int64_t{0xFFFFFFFF};
  if (digits[kSumWords] < 0) return static_cast<double>(INFINITY);  // no sum of numbers that are not negative
  int top = kSumWords;
  while (top >= 0 && digits[top] == 0) --top;
  if (top < 0) return 0.0;
  // The top three digits, moved up so that the topmost bit is bit 63 of `head`; what falls off below makes it
  // sticky: bits 0 ... 10 are below a double's last one, so rounding sees them exactly.
  const uint64_t first = static_cast<uint64_t>(digits[top]);
  const uint64_t second = top >= 1 ? static_cast<uint64_t>(digits[top - 1]) : 0;
  const uint64_t third = top >= 2 ? static_cast<uint64_t>(digits[top - 2]) : 0;
  const int shift = __clz(static_cast<int>(first));
  uint64_t head = (first << 32 | second) << shift | (third << shift) >> 32;
  bool sticky = (third << shift & 0xFFFFFFFFu) != 0;
  for (int w = top - 3; w >= 0; --w) sticky = sticky || digits[w] != 0;
  head |= sticky ? 1u : 0u;
  return ldexp(static_cast<double>(head), 32 * (top - 1) - shift - kLowestExponent);
}

}  // namespace ft::cuda
