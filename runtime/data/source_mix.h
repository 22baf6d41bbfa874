// From which source each sequence of a run comes.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/data/epoch_permutation.h"

namespace ft {

// Weights as whole numbers that add up to about kShareUnit, so that no machine rounds them differently later.
inline constexpr int64_t kShareUnit = int64_t{1} << 40;
// What is drawn less often than once in a billion sequences is a mistake.
inline constexpr double kLeastShare = 1e-9;

// weights: finite, above 0, fewer than EpochPermutation::kMaxFamilies. Errors: InvalidArgument for
// one that is below kLeastShare of their sum.
absl::StatusOr<std::vector<int64_t>> SharesOf(absl::Span<const double> weights);

// Positions p = 0, 1, ... of an endless row are dealt out to sources by their shares, in blocks of kBlock.
// How many of the first n blocks' positions a source has is never further than log2(sources) / 2, rounded up,
// from its exact part of n * kBlock, so errors do not add up: positions are parted between two halves of the
// sources, to the nearest whole number, and again within each half. In a block the sources stand in an order
// drawn from (seed, block). So the source of a position, and how many positions that source had before, are
// functions of (shares, seed, position): nothing is remembered, any position can be asked for.
class SourceMix {
 public:
  static constexpr int64_t kBlock = 256;

  // Where the positions of a block lead.
  struct Block {
    int64_t index = -1;  // none
    uint32_t source[kBlock];
    int64_t position[kBlock];  // in the source: how many positions it had before
  };

  SourceMix(absl::Span<const int64_t> shares, uint64_t seed);

  size_t num_sources() const { return ends_.size() - 1; }

  // Block `index`, from 0 to 2^54. Allocates nothing; thread-safe.
  void Fill(int64_t index, Block& block) const;

  // How many of the first `positions` each source has. Allocates.
  std::vector<int64_t> Dealt(int64_t positions) const;

 private:
  struct Layout;

  // How many of the positions of the blocks before `block` a source has.
  int64_t Before(int64_t block, size_t source) const;
  // Of `positions` that sources [begin, end) have together: how many those below `middle` have.
  int64_t Part(int64_t positions, size_t begin, size_t middle, size_t end) const;
  void Deal(size_t begin, size_t end, int64_t before, int64_t after, Layout& layout) const;

  std::vector<int64_t> ends_;  // ends_[i]: the sum of the shares before source i
  EpochPermutation order_;
};

}  // namespace ft
