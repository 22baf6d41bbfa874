// Tokens that lie one after the other in a file.
#pragma once

#include <cstdint>
#include <cstring>

#include "absl/types/span.h"

namespace ft {

// A view: whoever opened the file owns what it points to.
struct TokenRow {
  const uint8_t* data = nullptr;  // little-endian unsigned integers, aligned to token_bytes
  int token_bytes = 1;            // 1, 2 or 4
  int64_t count = 0;
  absl::Span<const uint8_t> mask =
      {};  // whether token i is a target: bit i & 7 of byte i >> 3; empty: all are
  // Document k is tokens [documents[k], documents[k + 1]), at least one. Empty: nobody knows where they
  // begin.
  absl::Span<const uint64_t> documents = {};
  int32_t padding = 0;  // the token that padding has

  bool Counts(int64_t i) const { return mask.empty() || (mask[i >> 3] >> (i & 7) & 1) != 0; }
  int64_t Token(int64_t i) const {
    uint32_t token = 0;
    std::memcpy(&token, data + i * token_bytes, static_cast<size_t>(token_bytes));
    return token;
  }
};

// Calls `with` with a value of the type of tokens of `token_bytes`.
template <typename With>
auto WithTokenType(int token_bytes, With with) {
  switch (token_bytes) {
    case 1:
      return with(uint8_t{0});
    case 2:
      return with(uint16_t{0});
    default:
      return with(uint32_t{0});
  }
}

}  // namespace ft
