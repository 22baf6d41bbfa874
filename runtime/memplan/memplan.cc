#include "runtime/memplan/memplan.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/memplan/search.h"

namespace ft {
namespace {

absl::Status Check(absl::Span<const LiveRange> ranges, uint64_t alignment) {
  if (alignment == 0 || (alignment & (alignment - 1)) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("alignment ", alignment, " is not a power of two"));
  }
  uint64_t room = (uint64_t{1} << 63) - 1;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const LiveRange& range = ranges[i];
    if (range.last < range.first) {
      return absl::InvalidArgumentError(
          absl::StrCat("buffer ", i, " ends at ", range.last, " before it begins at ", range.first));
    }
    if (range.size > room || RoundUp(range.size, alignment) > room) {
      return absl::OutOfRangeError(
          absl::StrCat("the buffers up to number ", i, " have more than 2^63 bytes in all"));
    }
    room -= RoundUp(range.size, alignment);
  }
  return absl::OkStatus();
}

// The time from the first to the last index at which anything is live.
LiveRange Extent(absl::Span<const LiveRange> ranges) {
  LiveRange extent{0, kEndOfProgram, 0};
  for (const LiveRange& range : ranges) {
    extent.first = std::min(extent.first, range.first);
    extent.last = std::max(extent.last, range.last);
  }
  return extent;
}

// Calls visit(time, bytes) where something begins or ends, in order: so much is live then.
template <typename Visit>
void VisitChanges(absl::Span<const LiveRange> ranges, uint64_t alignment, Visit visit) {
  // (time, whether it begins, size): at one time, what ended before goes first.
  std::vector<std::tuple<uint64_t, bool, uint64_t>> events;
  events.reserve(2 * ranges.size());
  for (const LiveRange& range : ranges) {
    const uint64_t size = RoundUp(range.size, alignment);
    events.emplace_back(range.first, true, size);
    events.emplace_back(uint64_t{range.last} + 1, false, size);
  }
  std::sort(events.begin(), events.end());
  uint64_t live = 0;
  for (const auto& [time, begins, size] : events) {
    live = begins ? live + size : live - size;
    visit(time, live);
  }
}

}  // namespace

absl::StatusOr<MemoryPlan> PlanMemory(absl::Span<const LiveRange> ranges, uint64_t alignment,
                                      uint64_t enough) {
  FT_RETURN_IF_ERROR(Check(ranges, alignment));
  MemoryPlan plan;
  plan.offsets.assign(ranges.size(), 0);
  const LiveBytes peak = MaxLiveBytes(ranges, alignment);
  plan.lower_bound = peak.bytes;
  plan.peak_index = peak.index;

  // Buffers that are live all the time meet every other one: they go to the bottom, at no loss, and out of
  // the search.
  const LiveRange extent = Extent(ranges);
  std::vector<LiveRange> rest;
  std::vector<size_t> index_of;  // rest -> ranges
  uint64_t bottom = 0;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const LiveRange& range = ranges[i];
    const uint64_t size = RoundUp(range.size, alignment);
    if (size == 0) continue;
    if (range.first == extent.first && range.last == extent.last) {
      plan.offsets[i] = bottom;
      bottom += size;
    } else {
      rest.push_back({size, range.first, range.last});
      index_of.push_back(i);
    }
  }
  plan.arena_bytes = bottom;
  if (!rest.empty()) {
    const Placement placement =
        FindPlacement(rest, plan.lower_bound - bottom, enough - std::min(enough, bottom));
    for (size_t i = 0; i < rest.size(); ++i) plan.offsets[index_of[i]] = bottom + placement.offsets[i];
    plan.arena_bytes += placement.height;
  }
  return plan;
}

LiveBytes MaxLiveBytes(absl::Span<const LiveRange> ranges, uint64_t alignment) {
  LiveBytes peak;
  VisitChanges(ranges, alignment, [&](uint64_t time, uint64_t bytes) {
    if (bytes > peak.bytes) peak = {bytes, static_cast<uint32_t>(time)};
  });
  return peak;
}

std::vector<uint64_t> LiveBytesAtEach(absl::Span<const LiveRange> ranges, size_t indices,
                                      uint64_t alignment) {
  std::vector<uint64_t> live;
  live.reserve(indices);
  uint64_t now = 0;
  VisitChanges(ranges, alignment, [&](uint64_t time, uint64_t bytes) {
    live.resize(std::max<size_t>(live.size(), std::min<size_t>(time, indices)), now);
    now = bytes;
  });
  live.resize(indices, now);
  return live;
}

}  // namespace ft
