#include "runtime/memplan/neighbours.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace ft {
namespace {

std::vector<uint32_t> OrderByStart(absl::Span<const LiveRange> ranges) {
  std::vector<uint32_t> order(ranges.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return ranges[a].first < ranges[b].first; });
  return order;
}

}  // namespace

// All pairs less those where one ends before the other begins.
uint64_t CountMeetings(absl::Span<const LiveRange> ranges) {
  std::vector<uint32_t> firsts, lasts;
  for (const LiveRange& range : ranges) {
    firsts.push_back(range.first);
    lasts.push_back(range.last);
  }
  std::sort(firsts.begin(), firsts.end());
  std::sort(lasts.begin(), lasts.end());
  const uint64_t n = ranges.size();
  uint64_t pairs = n < 2 ? 0 : n * (n - 1) / 2;
  size_t ended = 0;
  for (uint32_t first : firsts) {
    while (ended < lasts.size() && lasts[ended] < first) ++ended;
    pairs -= ended;
  }
  return pairs;
}

Neighbours::Neighbours(absl::Span<const LiveRange> ranges) : begin_(ranges.size() + 1) {
  std::vector<std::pair<uint32_t, uint32_t>> meetings;
  meetings.reserve(CountMeetings(ranges));
  std::vector<uint32_t> live;
  for (uint32_t buffer : OrderByStart(ranges)) {
    std::erase_if(live, [&](uint32_t other) { return ranges[other].last < ranges[buffer].first; });
    for (uint32_t other : live) {
      meetings.emplace_back(buffer, other);
      ++begin_[buffer + 1];
      ++begin_[other + 1];
    }
    live.push_back(buffer);
  }
  std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
  lists_.resize(2 * meetings.size());
  std::vector<uint64_t> next(begin_.begin(), begin_.end() - 1);
  for (const auto& [a, b] : meetings) {
    lists_[next[a]++] = b;
    lists_[next[b]++] = a;
  }
}

}  // namespace ft
