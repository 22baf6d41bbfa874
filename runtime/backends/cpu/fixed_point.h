// An exact sum of non-negative doubles: a fixed-point number of 20 words of 32 bits, each in an i64, so that
// up to 2^31 sums can be added word by word (over blocks, threads or ranks) before carries are resolved.
// Integer addition is associative: the order of blocks never shows.
#pragma once

#include <cstdint>

#include "runtime/base/flat_layout.h"

namespace ft::cpu {

inline constexpr int kSumWords = 20;       // word w weighs 2^(32 w - 320)
inline constexpr int kNotFiniteWord = 20;  // counts values that are infinite or NaN
static_assert(kNotFiniteWord + 1 == kAccumulatorWords);

// Adds `value` >= 0 exactly; bits below 2^-320 do not occur in sums of squares of f32, whose lowest bit is
// 2^-298.
void AddExactly(double value, int64_t* words);

// Adds another sum.
void AddWords(int64_t* words, const int64_t* more);

// Resolves carries: every word of the sum in [0, 2^32), the topmost excepted.
void Normalize(int64_t* words);

// The sum rounded once to the nearest double; infinity when a value was not finite, or the words are no such
// sum.
double ToDouble(const int64_t* words);

}  // namespace ft::cpu
