#include "runtime/base/content_hash.h"

#include <algorithm>
#include <bit>

#include "runtime/base/load_element.h"

namespace ft {
namespace {

static_assert(std::endian::native == std::endian::little, "words are read in place");

// The primes of the specification.
constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87u, kPrime2 = 0xC2B2AE3D27D4EB4Fu,
                   kPrime3 = 0x165667B19E3779F9u, kPrime4 = 0x85EBCA77C2B2AE63u,
                   kPrime5 = 0x27D4EB2F165667C5u;

uint64_t Round(uint64_t lane, uint64_t word) { return std::rotl(lane + word * kPrime2, 31) * kPrime1; }

}  // namespace

void ContentHash::Stripes(const uint8_t* data, size_t count) {
  auto [a, b, c, d] = lanes_;
  for (size_t i = 0; i < count; ++i, data += kStripe) {
    a = Round(a, LoadElement<uint64_t>(data));
    b = Round(b, LoadElement<uint64_t>(data + 8));
    c = Round(c, LoadElement<uint64_t>(data + 16));
    d = Round(d, LoadElement<uint64_t>(data + 24));
  }
  lanes_ = {a, b, c, d};
}

void ContentHash::Update(absl::Span<const uint8_t> bytes) {
  total_ += bytes.size();
  if (held_ > 0) {
    const size_t taken = std::min(bytes.size(), kStripe - held_);
    std::copy_n(bytes.data(), taken, rest_.data() + held_);
    held_ += taken;
    bytes.remove_prefix(taken);
    if (held_ < kStripe) return;
    Stripes(rest_.data(), 1);
    held_ = 0;
  }
  Stripes(bytes.data(), bytes.size() / kStripe);
  bytes.remove_prefix(bytes.size() / kStripe * kStripe);
  std::copy_n(bytes.data(), bytes.size(), rest_.data());
  held_ = bytes.size();
}

uint64_t ContentHash::Digest() const {
  uint64_t hash = kPrime5;
  if (total_ >= kStripe) {
    hash = std::rotl(lanes_[0], 1) + std::rotl(lanes_[1], 7) + std::rotl(lanes_[2], 12) +
           std::rotl(lanes_[3], 18);
    for (const uint64_t lane : lanes_) hash = (hash ^ Round(0, lane)) * kPrime1 + kPrime4;
  }
  hash += total_;
  const uint8_t *at = rest_.data(), *end = at + held_;
  for (; at + 8 <= end; at += 8)
    hash = std::rotl(hash ^ Round(0, LoadElement<uint64_t>(at)), 27) * kPrime1 + kPrime4;
  if (at + 4 <= end) {
    hash = std::rotl(hash ^ LoadElement<uint32_t>(at) * kPrime1, 23) * kPrime2 + kPrime3;
    at += 4;
  }
  for (; at < end; ++at) hash = std::rotl(hash ^ *at * kPrime5, 11) * kPrime1;
  hash = (hash ^ hash >> 33) * kPrime2;
  hash = (hash ^ hash >> 29) * kPrime3;
  return hash ^ hash >> 32;
}

uint64_t ContentHashOf(absl::Span<const uint8_t> bytes) {
  ContentHash hash;
  hash.Update(bytes);
  return hash.Digest();
}

}  // namespace ft
