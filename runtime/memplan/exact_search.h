// Decides whether buffers fit into an arena of a given height.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/numeric/int128.h"
#include "absl/types/span.h"
#include "runtime/memplan/neighbours.h"
#include "runtime/memplan/sections.h"

namespace ft {

enum class Verdict {
  kFits,     // a placement was found
  kTooLow,   // there is none, proved
  kUnknown,  // the work allowed was used up
};

// A depth-first search over placements in which every buffer lies on the bottom or on another one, from the
// lowest offset upwards; if any placement fits, one of these does (M. D. Moffitt, "MiniMalloc", ASPLOS 2023,
// calls them canonical). At each step the buffer that can lie lowest either lies there or is kept from it.
// What follows from a step is drawn from the sections: each is a machine that works on one buffer after the
// other, with release times (the lowest offset that a buffer can have) and a common deadline (the height).
// Times at which nothing is left to place cut the problem into parts that are solved one by one; parts that
// failed are remembered.
class ExactSearch {
 public:
  // `ranges` have positive sizes and must outlive the search.
  explicit ExactSearch(absl::Span<const LiveRange> ranges);

  // Whether what a search needs for `ranges` fits into some tens of megabytes.
  static bool Suits(absl::Span<const LiveRange> ranges);

  // Searches with `priority` (a permutation of the buffers; among those that can lie equally low the first is
  // tried first), for at most `work` units (see work()).
  Verdict Fit(uint64_t height, absl::Span<const uint32_t> priority, uint64_t work);

  // Of the placement, after Fit has returned kFits.
  const std::vector<uint64_t>& offsets() const { return offsets_; }

  // Buffers and sections looked at so far: the measure of effort that bounds the search alike on every
  // machine.
  uint64_t work() const { return work_; }

 private:
  using Buffers = std::vector<uint32_t>;
  using Span = Sections::Span;

  // A change of the state, to be taken back.
  struct Change {
    enum Kind : uint8_t { kLowest, kFloor, kPlaced } kind;
    uint32_t index;
    uint64_t before;
  };

  // Places what is left of `candidates`, all of them within `span`. When false, the state has to be taken
  // back.
  bool Solve(const Buffers& candidates, Span span);
  bool SolveParts(const Buffers& left, const std::vector<Span>& parts);
  // One decision about the lowest of the buffers `left`: true, with `solved`, when everything is placed;
  // false when nothing can be.
  bool Decide(const Buffers& left, Span span, bool* solved);
  std::vector<Span> PartsOf(Span span);
  absl::uint128 KeyOf(const Buffers& left, Span span);

  // Each of these returns false when it shows that the height is not enough, or that no work is left.
  bool Place(uint32_t buffer);
  bool KeepFromLowest(uint32_t buffer);
  bool Propagate();
  bool PropagateIn(uint32_t section);
  bool RaiseThoseNotFirst(absl::Span<const uint32_t> left, uint64_t bytes_left);

  void Raise(uint32_t buffer, uint64_t lowest);
  void Touch(Span sections);
  uint64_t FloorBelow(uint32_t buffer);
  void Reset(uint64_t height);
  void TakeBack(size_t mark);

  absl::Span<const LiveRange> ranges_;
  const Sections sections_;
  const Neighbours neighbours_;

  uint64_t height_ = 0;
  std::vector<uint64_t> lowest_;   // of each buffer: it lies there or higher
  std::vector<uint64_t> offsets_;  // of placed buffers
  std::vector<uint8_t> placed_;
  std::vector<uint64_t> floor_;     // of each section: the top of what was placed there last
  std::vector<uint64_t> left_;      // of each section: bytes not placed yet
  std::vector<uint32_t> crossing_;  // of each section: buffers left that reach into the next one
  std::vector<Buffers> by_lowest_;  // of each section: its buffers, nearly sorted
  std::vector<Change> changes_;
  std::vector<uint32_t> touched_;  // sections to look at
  std::vector<uint8_t> is_touched_;

  absl::flat_hash_set<absl::uint128> failed_;  // parts that cannot be placed within failed_height_
  uint64_t failed_height_ = 0;
  uint64_t work_ = 0, work_limit_ = 0;
};

}  // namespace ft
