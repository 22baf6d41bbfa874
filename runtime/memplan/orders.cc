#include "runtime/memplan/orders.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <tuple>
#include <utility>

#include "absl/numeric/int128.h"

namespace ft {
namespace {

uint64_t Lifetime(const LiveRange& range) { return uint64_t{range.last} - range.first + 1; }

// The buffers by descending `key`, equal ones by index.
template <typename Key>
Order SortedBy(absl::Span<const LiveRange> ranges, Key key) {
  Order order(ranges.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return key(ranges[a]) > key(ranges[b]); });
  return order;
}

// For each buffer the most bytes that are live at one time while it is.
std::vector<uint64_t> Pressures(absl::Span<const LiveRange> ranges) {
  // The live bytes rise only where something begins, so those times are enough.
  std::vector<uint32_t> times;
  for (const LiveRange& range : ranges) times.push_back(range.first);
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  auto position = [&](uint32_t time) {
    return std::lower_bound(times.begin(), times.end(), time) - times.begin();
  };
  auto after = [&](uint32_t time) {
    return std::upper_bound(times.begin(), times.end(), time) - times.begin();
  };

  std::vector<int64_t> change(times.size() + 1, 0);
  for (const LiveRange& range : ranges) {
    change[position(range.first)] += static_cast<int64_t>(range.size);
    change[after(range.last)] -= static_cast<int64_t>(range.size);
  }
  std::partial_sum(change.begin(), change.end(), change.begin());
  // highest[k][i]: the maximum over 2^k times from the i-th on.
  std::vector<std::vector<uint64_t>> highest(1, {change.begin(), change.end() - 1});
  for (size_t width = 2; width <= times.size(); width *= 2) {
    const std::vector<uint64_t>& half = highest.back();
    std::vector<uint64_t> row;
    for (size_t i = 0; i + width <= times.size(); ++i) row.push_back(std::max(half[i], half[i + width / 2]));
    highest.push_back(std::move(row));
  }
  std::vector<uint64_t> pressures;
  for (const LiveRange& range : ranges) {
    const size_t begin = position(range.first), end = after(range.last);
    const int level = std::bit_width(end - begin) - 1;
    pressures.push_back(std::max(highest[level][begin], highest[level][end - (size_t{1} << level)]));
  }
  return pressures;
}

// Buffers that live longer than `lifetime` nest at the bottom; the others follow from large to small and,
// where they are equal, in order of time, as is best for equal ones (gathered units, gradients of layers).
Order LongestThenLargest(absl::Span<const LiveRange> ranges, uint64_t lifetime) {
  return SortedBy(ranges, [&](const LiveRange& r) {
    return Lifetime(r) > lifetime ? std::tuple(true, Lifetime(r), r.size)
                                  : std::tuple(false, r.size, ~uint64_t{r.first});
  });
}

}  // namespace

std::vector<Order> PlacementOrders(absl::Span<const LiveRange> ranges) {
  using Pair = std::pair<uint64_t, uint64_t>;
  std::vector<Order> orders;
  orders.push_back(SortedBy(ranges, [](const LiveRange& r) { return Pair(Lifetime(r), r.size); }));
  // What counts as long: a few layers of many, some instructions of a few.
  uint64_t end = 0;
  for (const LiveRange& range : ranges) end = std::max<uint64_t>(end, range.last);
  for (uint64_t part : {512, 400, 256, 200, 128, 100, 64, 16})
    orders.push_back(LongestThenLargest(ranges, end / part));
  const Order by_area =
      SortedBy(ranges, [](const LiveRange& r) { return absl::uint128(r.size) * Lifetime(r); });
  orders.push_back(by_area);
  // The first and the last again, but those in the tightest places before the others.
  const std::vector<uint64_t> pressures = Pressures(ranges);
  for (Order order : {orders[0], by_area}) {
    std::stable_sort(order.begin(), order.end(),
                     [&](uint32_t a, uint32_t b) { return pressures[a] > pressures[b]; });
    orders.push_back(std::move(order));
  }
  orders.push_back(SortedBy(ranges, [](const LiveRange& r) { return Pair(r.size, Lifetime(r)); }));
  orders.push_back(SortedBy(ranges, [](const LiveRange& r) { return Pair(~uint64_t{r.first}, r.last); }));
  orders.push_back(SortedBy(ranges, [](const LiveRange& r) { return Pair(r.last, ~uint64_t{r.first}); }));
  return orders;
}

std::vector<Order> SearchPriorities(absl::Span<const LiveRange> ranges) {
  const std::vector<uint64_t> pressures = Pressures(ranges);
  const Order by_lifetime = SortedBy(ranges, [](const LiveRange& r) { return Lifetime(r); });
  const Order by_area =
      SortedBy(ranges, [](const LiveRange& r) { return absl::uint128(r.size) * Lifetime(r); });
  auto by_pressure = [&](uint32_t a, uint32_t b) { return pressures[a] > pressures[b]; };
  auto by_longer = [&](uint32_t a, uint32_t b) { return Lifetime(ranges[a]) > Lifetime(ranges[b]); };
  Order tightest_longest = by_lifetime, tightest_largest = by_area, longest = by_area;
  std::stable_sort(tightest_longest.begin(), tightest_longest.end(), by_pressure);
  std::stable_sort(tightest_largest.begin(), tightest_largest.end(), by_pressure);
  std::stable_sort(longest.begin(), longest.end(), by_longer);
  return {longest, tightest_largest, tightest_longest, by_area};
}

}  // namespace ft
