#include "runtime/memplan/sections.h"

#include <algorithm>
#include <set>

namespace ft {
namespace {

struct Event {
  uint64_t time;
  bool begins;  // false sorts first: what ends before an index has left when others begin at it
  uint32_t buffer;

  auto operator<=>(const Event&) const = default;
};

std::vector<Event> EventsOf(absl::Span<const LiveRange> ranges) {
  std::vector<Event> events;
  events.reserve(2 * ranges.size());
  for (uint32_t i = 0; i < ranges.size(); ++i) {
    events.push_back({ranges[i].first, true, i});
    events.push_back({uint64_t{ranges[i].last} + 1, false, i});
  }
  std::sort(events.begin(), events.end());
  return events;
}

}  // namespace

// Where buffers have begun since the last end, and one ends now, the live set is contained in no other.
Sections::Sections(absl::Span<const LiveRange> ranges) : spans(ranges.size()) {
  std::set<uint32_t> live;
  bool grew = false;
  for (const Event& event : EventsOf(ranges)) {
    if (event.begins) {
      live.insert(event.buffer);
      spans[event.buffer].begin = buffers.size();
      grew = true;
      continue;
    }
    if (grew) buffers.emplace_back(live.begin(), live.end());
    grew = false;
    live.erase(event.buffer);
    spans[event.buffer].end = buffers.size();
  }
}

}  // namespace ft
