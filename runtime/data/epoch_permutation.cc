#include "runtime/data/epoch_permutation.h"

#include <bit>
#include <utility>

#include "runtime/base/philox.h"

namespace ft {
namespace {

constexpr uint32_t kRounds = 4;

// The first of the Philox streams that belong to shuffling, kRounds for each family; parameters number theirs
// from 0 upwards, ops from kFirstOpStream.
constexpr uint32_t kShuffleStream = 0x5AFF1E00;
static_assert(kFirstOpStream < kShuffleStream &&
              kShuffleStream + uint64_t{kRounds} * EpochPermutation::kMaxFamilies <= kFirstRoundingStream);

}  // namespace

EpochPermutation::EpochPermutation(int64_t n, uint64_t seed, uint32_t family)
    : n_(static_cast<uint64_t>(n)), seed_(seed), stream_(kShuffleStream + kRounds * family) {
  const int bits = std::bit_width(n_ - 1);
  half_bits_ = (bits + 1) / 2;
}

int64_t EpochPermutation::At(int64_t epoch, int64_t position) const {
  if (n_ == 1) return 0;
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t value = static_cast<uint64_t>(position);
  // Applied again until it lands below n: every cycle of the network that passes `position` comes back below
  // n, so the walk ends and no two positions meet.
  do {
    uint64_t left = value >> half_bits_, right = value & mask;
    for (uint32_t round = 0; round < kRounds; ++round) {
      const uint64_t block = static_cast<uint64_t>(epoch) << 32 | right;  // half_bits_ <= 32
      const uint32_t mixed = Philox4x32(seed_, stream_ + round, static_cast<uint32_t>(epoch >> 32), block)[0];
      left ^= mixed & mask;
      std::swap(left, right);
    }
    value = left << half_bits_ | right;
  } while (value >= n_);
  return static_cast<int64_t>(value);
}

}  // namespace ft
