#include "runtime/backends/cpu/fixed_point.h"

#include <bit>
#include <cmath>
#include <limits>

namespace ft::cpu {
namespace {

constexpr int kLowestExponent = 320;
constexpr uint64_t kWordMask = 0xFFFFFFFFu;

// Adds without an end: sums that a plan made by someone else begins with may be anything.
void Add(int64_t& word, uint64_t value) { word = static_cast<int64_t>(static_cast<uint64_t>(word) + value); }

}  // namespace

void AddWords(int64_t* words, const int64_t* more) {
  for (int w = 0; w <= kNotFiniteWord; ++w) Add(words[w], static_cast<uint64_t>(more[w]));
}

void AddExactly(double value, int64_t* words) {
  if (!std::isfinite(value)) {
    Add(words[kNotFiniteWord], 1);
    return;
  }
  if (value == 0.0) return;
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);  // in [1/2, 1)
  uint64_t mantissa = static_cast<uint64_t>(std::ldexp(fraction, 53));
  int position = exponent - 53 + kLowestExponent;  // value = mantissa * 2^(exponent - 53)
  if (position < 0) {                              // what is moved out is zero
    mantissa >>= -position;
    position = 0;
  }
  const int word = position / 32, shift = position % 32;
  // 53 bits moved by up to 31 span at most three words.
  const uint64_t low = (mantissa & kWordMask) << shift, high = (mantissa >> 32) << shift;
  Add(words[word], low & kWordMask);
  Add(words[word + 1], (low >> 32) + (high & kWordMask));
  Add(words[word + 2], high >> 32);
}

void Normalize(int64_t* words) {
  for (int w = 0; w + 1 < kSumWords; ++w) {
    Add(words[w + 1], static_cast<uint64_t>(words[w] >> 32));
    words[w] &= static_cast<int64_t>(kWordMask);
  }
}

double ToDouble(const int64_t* words) {
  if (words[kNotFiniteWord] != 0) return std::numeric_limits<double>::infinity();
  int64_t digits[kSumWords + 1];
  for (int w = 0; w < kSumWords; ++w) digits[w] = words[w];
  Normalize(digits);
  digits[kSumWords] = digits[kSumWords - 1] >> 32;
  digits[kSumWords - 1] &= static_cast<int64_t>(kWordMask);
  // No sum of numbers that are not negative.
  if (digits[kSumWords] < 0) return std::numeric_limits<double>::infinity();
  int top = kSumWords;
  while (top >= 0 && digits[top] == 0) --top;
  if (top < 0) return 0.0;
  // The top three digits, moved up so that the topmost bit is bit 63 of `head`; what falls off below makes it
  // sticky.
  auto digit = [&](int w) { return w < 0 ? uint64_t{0} : static_cast<uint64_t>(digits[w]); };
  const int shift = std::countl_zero(digit(top)) - 32;
  const uint64_t pair = digit(top) << 32 | digit(top - 1);
  uint64_t head = pair << shift | (digit(top - 2) << shift) >> 32;
  bool sticky = (digit(top - 2) << shift & kWordMask) != 0;
  for (int w = top - 3; w >= 0; --w) sticky = sticky || digits[w] != 0;
  head |= sticky ? 1u : 0u;  // bits 0 ... 10 are below a double's last one, so rounding sees them exactly
  return std::ldexp(static_cast<double>(head), 32 * (top - 1) - shift - kLowestExponent);
}

}  // namespace ft::cpu
