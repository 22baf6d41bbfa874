// Sizes that come from a file: arithmetic that does not wrap round.
//
// A product or sum that does not fit is kTooLarge, which no tensor, buffer or workspace ever has: where it is
// compared with what is there, the comparison refuses it. All arguments are counts, at least 0.
#pragma once

#include <cstdint>
#include <limits>

namespace ft {

// Elements of the largest unit that a plan may have: far above every model, far below overflow in products
// with bytes per element and ranks.
inline constexpr int64_t kMaxUnitElements = int64_t{1} << 48;

inline constexpr int64_t kTooLarge = std::numeric_limits<int64_t>::max();

constexpr int64_t CheckedAdd(int64_t a, int64_t b) { return a > kTooLarge - b ? kTooLarge : a + b; }

constexpr int64_t CheckedMul(int64_t a, int64_t b) { return a != 0 && b > kTooLarge / a ? kTooLarge : a * b; }

template <typename... Rest>
constexpr int64_t CheckedMul(int64_t a, int64_t b, Rest... rest) {
  return CheckedMul(CheckedMul(a, b), rest...);
}

// a / b, rounded up; b is positive.
constexpr int64_t CeilDiv(int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

}  // namespace ft
