#include "runtime/data/token_width.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace ft {
namespace {

using Bytes = absl::Span<const uint8_t>;

constexpr size_t kSample = size_t{8} << 20;
constexpr int64_t kWanted = 16;  // integers whose lower half is above what the upper half ever is

// The unsigned integer of `width` bytes at `at`.
uint64_t Load(Bytes bytes, size_t at, int width, bool big_endian) {
  uint64_t value = 0;
  std::memcpy(&value, bytes.data() + at, static_cast<size_t>(width));
  return big_endian ? __builtin_bswap64(value) >> (64 - 8 * width) : value;
}

// Whether the upper halves of integers twice as wide as `width` never exceed `highest`, while at least
// kWanted of the lower halves do.
bool HalvesDiffer(Bytes bytes, int width, bool big_endian, uint64_t highest) {
  const size_t pair = 2 * static_cast<size_t>(width);
  int64_t larger = 0;
  for (size_t at = 0; at + pair <= bytes.size(); at += pair) {
    const uint64_t first = Load(bytes, at, width, big_endian);
    const uint64_t second = Load(bytes, at + pair / 2, width, big_endian);
    if ((big_endian ? first : second) > highest) return false;
    larger += (big_endian ? second : first) > highest;
  }
  return larger >= kWanted;
}

template <typename Fits>
bool All(Bytes bytes, int width, bool big_endian, Fits fits) {
  const auto step = static_cast<size_t>(width);
  if (bytes.empty() || bytes.size() % step != 0) return false;
  for (size_t at = 0; at < bytes.size(); at += step) {
    if (!fits(Load(bytes, at, width, big_endian))) return false;
  }
  return true;
}

}  // namespace

std::string LayoutText(IntegerLayout layout) {
  const std::string order = layout.big_endian ? "big-endian " : "";
  return layout.bytes == 8 ? order + "64-bit integers" : fmt::format("{}uint{}", order, 8 * layout.bytes);
}

bool UpperHalvesAreZero(Bytes bytes, int width, bool big_endian) {
  return HalvesDiffer(bytes.first(std::min(bytes.size(), kSample)), width, big_endian, 0);
}

IntegerLayout GuessLayout(Bytes bytes, int token_bytes, int64_t vocab_size) {
  bytes = bytes.first(std::min(bytes.size(), kSample));
  const uint64_t last = static_cast<uint64_t>(vocab_size) - 1;
  // Some tokens of special meaning may stand above the model's vocabulary; 4 times 65536 are enough for any.
  const uint64_t upper = token_bytes == 4 ? 0 : std::max<uint64_t>(last >> 16, 3);
  for (const bool big_endian : {false, true}) {
    const bool wider = HalvesDiffer(bytes, token_bytes, big_endian, 0) ||
                       (upper > 0 && HalvesDiffer(bytes, token_bytes, big_endian, upper));
    if (!wider) continue;
    // Four uint16 of which only one is not 0 are one integer of 64 bits.
    const bool eight = token_bytes == 4 || HalvesDiffer(bytes, 4, big_endian, 0);
    return {.bytes = eight ? 8 : 4, .big_endian = big_endian};
  }
  return {.bytes = token_bytes, .big_endian = false};
}

IntegerLayout LayoutThatFits(Bytes bytes, int token_bytes, int64_t vocab_size) {
  const auto fits = [vocab_size](uint64_t token) { return token < static_cast<uint64_t>(vocab_size); };
  const int other = token_bytes == 2 ? 4 : 2;
  for (const IntegerLayout layout :
       {GuessLayout(bytes, token_bytes, vocab_size), IntegerLayout{token_bytes, true},
        IntegerLayout{other, false}, IntegerLayout{other, true}}) {
    const bool says_nothing = layout.bytes == 2 && vocab_size > 65535;  // any bytes would fit
    if (!says_nothing && All(bytes, layout.bytes, layout.big_endian, fits)) return layout;
  }
  return {.bytes = token_bytes, .big_endian = false};
}

}  // namespace ft
