// Tokens that are read with another width or order of bytes than they were written with.
#pragma once

#include <cstdint>
#include <string>

#include "absl/types/span.h"

namespace ft {

// How integers lie in a file.
struct IntegerLayout {
  int bytes = 2;  // 2, 4, 8
  bool big_endian = false;

  bool operator==(const IntegerLayout&) const = default;
};

// "uint32", "big-endian uint32", "64-bit integers"
std::string LayoutText(IntegerLayout layout);

// Whether of integers of 2 * `width` bytes the upper halves are all 0 while at least 16 lower halves are not.
// Of large files the first 8 MiB are looked at.
bool UpperHalvesAreZero(absl::Span<const uint8_t> bytes, int width, bool big_endian);

// What `bytes`, given as little-endian tokens of `token_bytes` (2 or 4), look like: a wider integer shows
// itself by its upper half, which is 0, or as small as a vocabulary of `vocab_size` leaves it, at every other
// place, while the other half is not. Tokens of the width given do not do that, however small they are (a
// vocabulary of 65 leaves the upper *byte* 0, not every other token), unless they really alternate: among n
// tokens of one distribution the chance is below 2^-n, and 16 tokens above the bound are asked for. Of large
// files the first 8 MiB are looked at. Returns the layout given where nothing speaks against it.
IntegerLayout GuessLayout(absl::Span<const uint8_t> bytes, int token_bytes, int64_t vocab_size);

// For tokens that are not all below `vocab_size` as they were read: the layout by which they all are, so that
// the message can name it. The one given where there is none.
IntegerLayout LayoutThatFits(absl::Span<const uint8_t> bytes, int token_bytes, int64_t vocab_size);

}  // namespace ft
