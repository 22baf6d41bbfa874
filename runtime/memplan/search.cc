#include "runtime/memplan/search.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <optional>
#include <vector>

#include "absl/numeric/int128.h"
#include "runtime/base/philox.h"
#include "runtime/memplan/exact_search.h"

namespace ft {
namespace {

// In units of Placer::work(): what keeps 20,000 buffers well below two seconds.
constexpr uint64_t kOrderingWork = 250'000'000;
// Of a search when the bound is missed by a thousandth, and of two more when it is missed by a hundredth.
constexpr uint64_t kShortSearchWork = 10'000'000;
constexpr uint64_t kLongSearchWork = 60'000'000;
// The same of an exact search, in units of ExactSearch::work(), of which some 100 million take a second.
constexpr uint64_t kShortExactWork = 5'000'000;
constexpr uint64_t kLongExactWork = 400'000'000;
// With more buffers the long search would not come to an end: they are plans of many layers, bound to many
// meshes.
constexpr size_t kLongExactBuffers = 512;
// Of the first try with each priority; the next ones double it. A priority that leads to a placement at all
// mostly does so soon.
constexpr uint64_t kFirstTryWork = 500'000;
constexpr int kMovesWithoutGain = 2'000;

using Order = std::vector<uint32_t>;

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

// The most promising orders for training steps first: a forward and backward pass nests lifetimes, and nested
// lifetimes stack perfectly when the longest come first.
std::vector<Order> Orders(absl::Span<const LiveRange> ranges) {
  using Pair = std::pair<uint64_t, uint64_t>;
  std::vector<Order> orders;
  orders.push_back(SortedBy(ranges, [](const LiveRange& r) { return Pair(Lifetime(r), r.size); }));
  orders.push_back(SortedBy(ranges, [](const LiveRange& r) { return absl::uint128(r.size) * Lifetime(r); }));
  orders.push_back(SortedBy(ranges, [](const LiveRange& r) { return Pair(r.size, Lifetime(r)); }));
  orders.push_back(SortedBy(ranges, [](const LiveRange& r) { return Pair(~uint64_t{r.first}, r.last); }));
  orders.push_back(SortedBy(ranges, [](const LiveRange& r) { return Pair(r.last, ~uint64_t{r.first}); }));
  // The second and first again, but those in the tightest places before the others.
  const std::vector<uint64_t> pressures = Pressures(ranges);
  for (size_t from : {1, 0}) {
    Order order = orders[from];
    std::stable_sort(order.begin(), order.end(),
                     [&](uint32_t a, uint32_t b) { return pressures[a] > pressures[b]; });
    orders.insert(orders.begin() + 2, std::move(order));
  }
  return orders;
}

// Priorities for exact searches: by the tightest place of a buffer, its lifetime and their products with its
// size. None of them is good for all instances.
std::vector<Order> Priorities(absl::Span<const LiveRange> ranges) {
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

// Looks for lower placements until one is within a thousandth of what is proved to be needed.
class ExactDescent {
 public:
  ExactDescent(absl::Span<const LiveRange> ranges, uint64_t lower_bound)
      : ranges_(ranges), search_(ranges), priorities_(Priorities(ranges)), needed_(lower_bound) {}

  // Replaces `best` where something lower is found.
  void Improve(uint64_t work, Placement* best) {
    const uint64_t limit = search_.work() + work;
    uint64_t floor = needed_;  // not worth a try below: proved, or given up
    for (uint64_t height = needed_; search_.work() < limit && height < best->height;
         height = floor + (best->height - floor) / 2) {
      // What is hard is given half of the work, so that something is left for a height that is easier.
      const Verdict verdict = Try(height, search_.work() + (limit - search_.work()) / 2);
      if (verdict == Verdict::kFits) *best = {search_.offsets(), HeightOf(search_.offsets())};
      if (verdict != Verdict::kFits) floor = height;
      if (verdict == Verdict::kTooLow) needed_ = std::max(needed_, height + 1);
      if (best->height - floor <= floor / 1000) return;
    }
  }

 private:
  Verdict Try(uint64_t height, uint64_t limit) {
    for (uint64_t work = kFirstTryWork;; work *= 2) {
      for (const Order& priority : priorities_) {
        if (search_.work() >= limit) return Verdict::kUnknown;
        const Verdict verdict = search_.Fit(height, priority, std::min(work, limit - search_.work()));
        if (verdict != Verdict::kUnknown) return verdict;
      }
    }
  }

  uint64_t HeightOf(const std::vector<uint64_t>& offsets) const {
    uint64_t height = 0;
    for (size_t i = 0; i < offsets.size(); ++i) height = std::max(height, offsets[i] + ranges_[i].size);
    return height;
  }

  absl::Span<const LiveRange> ranges_;
  ExactSearch search_;
  std::vector<Order> priorities_;
  uint64_t needed_;  // no placement is lower
};

// Random numbers that depend on nothing but how many were drawn.
class Draws {
 public:
  uint64_t Below(uint64_t n) {
    const PhiloxBlock block = Philox4x32(/*seed=*/0, /*stream=*/0, /*step=*/0, count_++);
    return (uint64_t{block[1]} << 32 | block[0]) % n;
  }

 private:
  uint64_t count_ = 0;
};

// Replaces `best` where promotions find something lower. A buffer that does not fit below the best height so
// far is placed earlier the next time, so those that are hard to place come to the front. Starts anew from
// each order.
class PromotionSearch {
 public:
  PromotionSearch(Placer* placer, uint64_t lower_bound) : placer_(*placer), lower_bound_(lower_bound) {}

  void Improve(const std::vector<Order>& orders, uint64_t work, Placement* best) {
    const uint64_t begin = placer_.work();
    for (size_t i = 0; i < orders.size(); ++i)
      Promote(orders[i], begin + work * (i + 1) / orders.size(), best);
  }

 private:
  void Promote(Order order, uint64_t work_limit, Placement* best) {
    Placement next;
    while (placer_.work() < work_limit && best->height > lower_bound_) {
      if (placer_.Place(order, Fit::kFirst, best->height - 1, &next)) {
        std::swap(*best, next);
        continue;
      }
      const size_t from = std::find(order.begin(), order.end(), placer_.overflow()) - order.begin();
      const size_t to = draws_.Below(from + 1);
      std::rotate(order.begin() + to, order.begin() + from, order.begin() + from + 1);
    }
  }

  Placer& placer_;
  uint64_t lower_bound_;
  Draws draws_;
};

// Replaces `best` where moves find something lower. A move takes a buffer to another place in the order,
// mostly one that reaches the top of the arena. Equally high results are walked on from, so that the search
// crosses plateaus.
class LocalSearch {
 public:
  LocalSearch(absl::Span<const LiveRange> ranges, Placer* placer, uint64_t lower_bound)
      : ranges_(ranges), placer_(*placer), lower_bound_(lower_bound) {}

  void Improve(uint64_t work, Placement* best) {
    // Placing in order of the offsets found can only lower every buffer, so it is where to start from.
    Order order(ranges_.size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(),
                     [&](uint32_t a, uint32_t b) { return best->offsets[a] < best->offsets[b]; });
    Placement current;
    if (!placer_.Place(order, Fit::kFirst, best->height, &current)) return;
    *best = current;
    const uint64_t work_limit = placer_.work() + work;
    for (int idle = 0; idle < kMovesWithoutGain; ++idle) {
      if (best->height <= lower_bound_ || placer_.work() >= work_limit) return;
      Order next = Moved(order, *best);
      if (!placer_.Place(next, Fit::kFirst, best->height, &current)) continue;
      if (current.height < best->height) idle = 0;
      order = std::move(next);
      std::swap(*best, current);
    }
  }

 private:
  Order Moved(const Order& order, const Placement& placement) {
    std::vector<size_t> top;  // positions in `order`
    for (size_t i = 0; i < order.size(); ++i) {
      if (placement.offsets[order[i]] + ranges_[order[i]].size == placement.height) top.push_back(i);
    }
    const bool any = draws_.Below(4) == 0;
    const size_t from = any ? draws_.Below(order.size()) : top[draws_.Below(top.size())];
    const size_t to = draws_.Below(order.size());
    Order next = order;
    if (to < from) {
      std::rotate(next.begin() + to, next.begin() + from, next.begin() + from + 1);
    } else {
      std::rotate(next.begin() + from, next.begin() + from + 1, next.begin() + to + 1);
    }
    return next;
  }

  absl::Span<const LiveRange> ranges_;
  Placer& placer_;
  uint64_t lower_bound_;
  Draws draws_;
};

}  // namespace

Placement FindPlacement(absl::Span<const LiveRange> ranges, uint64_t lower_bound) {
  Placer placer(ranges);
  Placement best, next;
  best.height = Placer::kNoLimit;
  const std::vector<Order> orders = Orders(ranges);
  for (Fit fit : {Fit::kFirst, Fit::kBest}) {
    // The second fit costs as much as the first and finds what is near the bound already hardly any lower.
    if (fit == Fit::kBest && best.height <= lower_bound + lower_bound / 1000) break;
    for (const Order& order : orders) {
      if (best.height <= lower_bound || placer.work() >= kOrderingWork) break;
      if (placer.Place(order, fit, best.height - 1, &next)) std::swap(best, next);
    }
  }
  auto misses_by = [&](uint64_t part) { return best.height > lower_bound + lower_bound / part; };
  PromotionSearch promotions(&placer, lower_bound);
  if (misses_by(1000)) promotions.Improve(orders, kShortSearchWork, &best);
  if (!misses_by(1000)) return best;
  std::optional<ExactDescent> exact;
  if (ExactSearch::Suits(ranges)) exact.emplace(ranges, lower_bound);
  if (exact) exact->Improve(kShortExactWork, &best);
  if (!misses_by(100)) return best;
  promotions.Improve(orders, kLongSearchWork, &best);
  LocalSearch(ranges, &placer, lower_bound).Improve(kLongSearchWork, &best);
  if (exact && ranges.size() <= kLongExactBuffers) exact->Improve(kLongExactWork, &best);
  return best;
}

}  // namespace ft
