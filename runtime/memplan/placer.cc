#include "runtime/memplan/placer.h"

#include <algorithm>

namespace ft {
namespace {

constexpr uint64_t kPlacing = 16;  // a buffer, beside looking at intervals

}  // namespace

Placer::Placer(absl::Span<const LiveRange> ranges)
    : ranges_(ranges), sections_(ranges), occupancy_(sections_.size()) {}

uint64_t Placer::OffsetFor(uint32_t buffer, Fit fit) {
  taken_.clear();
  occupancy_.Collect(sections_.of(buffer), &taken_);
  GapFinder finder(&taken_);
  const uint64_t offset = finder.Find(ranges_[buffer].size, fit);
  work_ += kPlacing + finder.work();
  return offset;
}

bool Placer::Place(absl::Span<const uint32_t> order, Fit fit, uint64_t limit, uint64_t work_limit,
                   Placement* out) {
  out->offsets.assign(ranges_.size(), 0);
  out->height = 0;
  occupancy_.Clear();
  for (uint32_t buffer : order) {
    const uint64_t offset = OffsetFor(buffer, fit);
    const uint64_t end = offset + ranges_[buffer].size;
    occupancy_.Take(sections_.of(buffer), {offset, end});
    out->offsets[buffer] = offset;
    out->height = std::max(out->height, end);
    if (out->height > limit || work_ > work_limit) {
      overflow_ = buffer;
      return false;
    }
  }
  return true;
}

}  // namespace ft
