// Going through tokens and bytes once, as fast as memory is read.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "runtime/base/content_hash.h"
#include "runtime/data/token_row.h"

namespace ft {

// The first of `count` tokens that is not below vocab_size; count: none. Looks at chunks whole, whose number
// of tokens is known so that their maximum vectorises, and into one only when it holds such a token.
template <typename T>
int64_t FindOutside(const T* tokens, int64_t count, int64_t vocab_size) {
  constexpr int64_t kChunk = 256;
  const auto is_outside = [vocab_size](T token) { return token >= vocab_size; };
  int64_t begin = 0;
  for (; begin + kChunk <= count; begin += kChunk) {
    T highest = 0;
    for (int64_t i = 0; i < kChunk; ++i) highest = std::max(highest, tokens[begin + i]);
    if (is_outside(highest)) break;
  }
  return std::find_if(tokens + begin, tokens + count, is_outside) - tokens;
}

// Calls `with` with pieces of `bytes`, small enough to stay in the cache from one reader to the next, until
// it returns false.
template <typename With>
void ForPieces(absl::Span<const uint8_t> bytes, With with) {
  constexpr size_t kPiece = size_t{1} << 17;
  for (size_t at = 0; at < bytes.size(); at += kPiece)
    if (!with(bytes.subspan(at, kPiece))) return;
}

// The first of tokens of `width` bytes that is not below `bound`; their number: none. Feeds them to `hash` on
// the way, all of them where none is outside.
inline int64_t ScanTokens(absl::Span<const uint8_t> tokens, int width, int64_t bound, ContentHash& hash) {
  const bool any_fits = bound >= int64_t{1} << (8 * width);
  int64_t position = 0;
  ForPieces(tokens, [&](absl::Span<const uint8_t> piece) {
    const auto count = static_cast<int64_t>(piece.size()) / width;
    const int64_t inside = any_fits ? count : WithTokenType(width, [&](auto type) {
      return FindOutside(reinterpret_cast<const decltype(type)*>(piece.data()), count, bound);
    });
    position += inside;
    hash.Update(piece);
    return inside == count;
  });
  return position;
}

}  // namespace ft
