#include "runtime/memplan/sections.h"

#include <algorithm>

namespace ft {
namespace {

struct Boundary {
  uint64_t time;
  bool begins;  // false sorts first: what ends before an index has left when others begin at it
  uint32_t buffer;

  auto operator<=>(const Boundary&) const = default;
};

std::vector<Boundary> BoundariesOf(absl::Span<const LiveRange> ranges) {
  std::vector<Boundary> boundaries;
  boundaries.reserve(2 * ranges.size());
  for (uint32_t i = 0; i < ranges.size(); ++i) {
    boundaries.push_back({ranges[i].first, true, i});
    boundaries.push_back({uint64_t{ranges[i].last} + 1, false, i});
  }
  std::sort(boundaries.begin(), boundaries.end());
  return boundaries;
}

}  // namespace

// Where buffers have begun since the last end, and one ends now, the live set is contained in no other.
Sections::Sections(absl::Span<const LiveRange> ranges) : spans_(ranges.size()) {
  bool grew = false;
  for (const Boundary& boundary : BoundariesOf(ranges)) {
    if (boundary.begins) {
      spans_[boundary.buffer].begin = size_;
    } else {
      size_ += grew;
      spans_[boundary.buffer].end = size_;
    }
    grew = boundary.begins;
  }
}

std::vector<std::vector<uint32_t>> Sections::Buffers() const {
  std::vector<std::vector<uint32_t>> buffers(size_);
  for (uint32_t buffer = 0; buffer < spans_.size(); ++buffer) {
    for (uint32_t s = spans_[buffer].begin; s < spans_[buffer].end; ++s) buffers[s].push_back(buffer);
  }
  return buffers;
}

}  // namespace ft
