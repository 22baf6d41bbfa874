// A hash of what a file holds, as fast as memory is read.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace ft {

// XXH64 with seed 0 (Y. Collet, "xxHash fast digest algorithm", version 0.1.1), fed in pieces of any size:
// only the bytes count, not how they were cut. It finds changes that happen; it is no defence against
// forgery.
class ContentHash {
 public:
  void Update(absl::Span<const uint8_t> bytes);
  uint64_t Digest() const;  // of everything so far

 private:
  static constexpr size_t kStripe = 32;

  void Stripes(const uint8_t* data, size_t count);

  std::array<uint64_t, 4> lanes_ = {0x60EA27EEADC0B5D6u, 0xC2B2AE3D27D4EB4Fu, 0, 0x61C8864E7A143579u};
  uint64_t total_ = 0;                      // bytes
  std::array<uint8_t, kStripe> rest_ = {};  // what does not fill a stripe yet
  size_t held_ = 0;                         // bytes of it
};

uint64_t ContentHashOf(absl::Span<const uint8_t> bytes);

}  // namespace ft
