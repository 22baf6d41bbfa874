#include "runtime/memplan/validator.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace ft {
namespace {

std::string Describe(size_t index, const LiveRange& range, uint64_t offset) {
  return absl::StrCat("buffer ", index, " (live ", range.first, "-", range.last, ", bytes ", offset, "-",
                      offset + range.size - 1, ")");
}

absl::Status CheckEachAlone(absl::Span<const LiveRange> ranges, absl::Span<const uint64_t> offsets,
                            uint64_t arena_bytes, uint64_t alignment) {
  if (ranges.size() != offsets.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(ranges.size(), " buffers but ", offsets.size(), " offsets"));
  }
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i].last < ranges[i].first) {
      return absl::InvalidArgumentError(absl::StrCat("buffer ", i, " ends before it begins"));
    }
    if (offsets[i] % alignment != 0) {
      return absl::InternalError(absl::StrCat("memory plan: buffer ", i, " lies at ", offsets[i],
                                              ", not a multiple of ", alignment));
    }
    if (offsets[i] > arena_bytes || ranges[i].size > arena_bytes - offsets[i]) {
      return absl::InternalError(absl::StrCat("memory plan: buffer ", i, " of ", ranges[i].size, " bytes at ",
                                              offsets[i], " leaves the arena of ", arena_bytes, " bytes"));
    }
  }
  return absl::OkStatus();
}

struct Event {
  uint64_t time;
  bool begins;  // false sorts first: what ends before an index makes room for what begins at it
  size_t buffer;

  bool operator<(const Event& other) const {
    return std::tie(time, begins, buffer) < std::tie(other.time, other.begins, other.buffer);
  }
};

}  // namespace

absl::Status ValidateMemoryPlan(absl::Span<const LiveRange> ranges, absl::Span<const uint64_t> offsets,
                                uint64_t arena_bytes, uint64_t alignment) {
  FT_RETURN_IF_ERROR(CheckEachAlone(ranges, offsets, arena_bytes, alignment));
  std::vector<Event> events;
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i].size == 0) continue;  // has no byte to share
    events.push_back({ranges[i].first, true, i});
    events.push_back({uint64_t{ranges[i].last} + 1, false, i});
  }
  std::sort(events.begin(), events.end());

  // The buffers live now by offset. As long as they are disjoint, a new one can only clash with the two
  // beside it.
  std::map<uint64_t, size_t> live;
  for (const Event& event : events) {
    const uint64_t offset = offsets[event.buffer];
    if (!event.begins) {
      live.erase(offset);
      continue;
    }
    auto above = live.lower_bound(offset);
    size_t clash = event.buffer;
    if (above != live.end() && above->first - offset < ranges[event.buffer].size) clash = above->second;
    if (above != live.begin()) {
      auto below = std::prev(above);
      if (offset - below->first < ranges[below->second].size) clash = below->second;
    }
    if (clash != event.buffer) {
      return absl::InternalError(absl::StrCat("memory plan: ", Describe(clash, ranges[clash], offsets[clash]),
                                              " and ", Describe(event.buffer, ranges[event.buffer], offset),
                                              " share memory while both are live"));
    }
    live.emplace(offset, event.buffer);
  }
  return absl::OkStatus();
}

}  // namespace ft
