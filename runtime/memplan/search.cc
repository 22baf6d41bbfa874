#include "runtime/memplan/search.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include "runtime/base/philox.h"
#include "runtime/memplan/exact_search.h"
#include "runtime/memplan/orders.h"

namespace ft {
namespace {

// In units of Placer::work(): with it 20,000 buffers take a second or two.
constexpr uint64_t kOrderingWork = 250'000'000;
// The same within a thousandth of the bound.
constexpr uint64_t kPolishingWork = 3'000'000;
// Of a search when the bound is missed by a thousandth, and of two more when it is missed by a hundredth.
constexpr uint64_t kShortSearchWork = 12'000'000;
constexpr uint64_t kLongSearchWork = 40'000'000;
// The same of an exact search, in units of ExactSearch::work(), of which some 100 million take a second.
constexpr uint64_t kShortExactWork = 5'000'000;
constexpr uint64_t kLongExactWork = 800'000'000;
// The long exact search is for what the orders of placement miss by a hundredth, and not for more buffers: it
// would not come to an end with plans of many layers, which are bound to many meshes.
constexpr size_t kLongExactBuffers = 512;
// Of the first try with each priority; the next ones double it. A priority that leads to a placement at all
// mostly does so soon.
constexpr uint64_t kFirstTryWork = 500'000;
constexpr int kMovesWithoutGain = 2'000;

// Looks for lower placements until one is within a thousandth of what is proved to be needed.
class ExactDescent {
 public:
  ExactDescent(absl::Span<const LiveRange> ranges, uint64_t lower_bound)
      : ranges_(ranges), search_(ranges), priorities_(SearchPriorities(ranges)), needed_(lower_bound) {}

  // Replaces `best` where something lower is found.
  void Improve(uint64_t work, Placement* best) {
    const uint64_t limit = search_.work() + work;
    uint64_t floor = needed_;  // not worth a try below: proved, or given up
    for (uint64_t height = needed_; search_.work() < limit && height < best->height;
         height = floor + (best->height - floor) / 2) {
      // What is hard is given a third of the work, so that something is left for heights that are easier.
      const Verdict verdict = Try(height, search_.work() + (limit - search_.work()) / 3);
      if (verdict == Verdict::kFits) *best = {search_.offsets(), HeightOf(search_.offsets())};
      if (verdict != Verdict::kFits) floor = height;
      if (verdict == Verdict::kTooLow) needed_ = std::max(needed_, height + 1);
      if (best->height - floor <= floor / 1000) break;
    }
    // What is left of the work goes where the next placement is likeliest.
    while (search_.work() < limit && best->height > needed_ + needed_ / 1000) {
      if (Try(best->height - 1, limit) != Verdict::kFits) return;
      *best = {search_.offsets(), HeightOf(search_.offsets())};
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
  PromotionSearch(Placer* placer, uint64_t goal) : placer_(*placer), goal_(goal) {}

  void Improve(const std::vector<Order>& orders, uint64_t work, Placement* best) {
    const uint64_t begin = placer_.work();
    for (size_t i = 0; i < orders.size(); ++i)
      Promote(orders[i], begin + work * (i + 1) / orders.size(), best);
  }

 private:
  void Promote(Order order, uint64_t work_limit, Placement* best) {
    Placement next;
    while (placer_.work() < work_limit && best->height > goal_) {
      if (placer_.Place(order, Fit::kFirst, best->height - 1, work_limit, &next)) {
        std::swap(*best, next);
        continue;
      }
      const size_t from = std::find(order.begin(), order.end(), placer_.overflow()) - order.begin();
      const size_t to = draws_.Below(from + 1);
      std::rotate(order.begin() + to, order.begin() + from, order.begin() + from + 1);
    }
  }

  Placer& placer_;
  uint64_t goal_;
  Draws draws_;
};

// Replaces `best` where moves find something lower. A move takes a buffer to another place in the order,
// mostly one that reaches the top of the arena. Equally high results are walked on from, so that the search
// crosses plateaus.
class LocalSearch {
 public:
  LocalSearch(absl::Span<const LiveRange> ranges, Placer* placer, uint64_t goal)
      : ranges_(ranges), placer_(*placer), goal_(goal) {}

  void Improve(uint64_t work, Placement* best) {
    // Placing in order of the offsets found can only lower every buffer, so it is where to start from.
    Order order(ranges_.size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(),
                     [&](uint32_t a, uint32_t b) { return best->offsets[a] < best->offsets[b]; });
    const uint64_t work_limit = placer_.work() + work;
    Placement current;
    if (!placer_.Place(order, Fit::kFirst, best->height, work_limit, &current)) return;
    *best = current;
    for (int idle = 0; idle < kMovesWithoutGain; ++idle) {
      if (best->height <= goal_ || placer_.work() >= work_limit) return;
      Order next = Moved(order, *best);
      if (!placer_.Place(next, Fit::kFirst, best->height, work_limit, &current)) continue;
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
  uint64_t goal_;
  Draws draws_;
};

}  // namespace

Placement FindPlacement(absl::Span<const LiveRange> ranges, uint64_t lower_bound, uint64_t enough) {
  const uint64_t goal = std::max(lower_bound, enough);
  Placer placer(ranges);
  Placement best, next;
  best.height = Placer::kNoLimit;
  auto misses_by = [&](uint64_t part) {
    return best.height > std::max(goal, lower_bound + lower_bound / part);
  };
  const std::vector<Order> orders = PlacementOrders(ranges);
  for (Fit fit : {Fit::kFirst, Fit::kBest}) {
    // The second fit costs as much as the first, and hardly lowers what is near the bound already.
    if (fit == Fit::kBest && !misses_by(100)) break;
    for (const Order& order : orders) {
      if (!best.offsets.empty() && best.height <= goal) break;
      const uint64_t work = best.offsets.empty() ? Placer::kNoLimit
                            : misses_by(1000)    ? kOrderingWork
                                                 : kPolishingWork;
      if (placer.work() >= work) break;
      if (placer.Place(order, fit, best.height - 1, work, &next)) std::swap(best, next);
    }
  }
  const bool hard = misses_by(100) && ranges.size() <= kLongExactBuffers;
  PromotionSearch promotions(&placer, goal);
  if (misses_by(1000)) promotions.Improve(orders, kShortSearchWork, &best);
  if (!misses_by(1000)) return best;
  std::optional<ExactDescent> exact;
  if (ExactSearch::Suits(ranges)) exact.emplace(ranges, lower_bound);
  if (exact) exact->Improve(kShortExactWork, &best);
  if (misses_by(100)) {
    promotions.Improve(orders, kLongSearchWork, &best);
    LocalSearch(ranges, &placer, goal).Improve(kLongSearchWork, &best);
  }
  if (exact && hard) exact->Improve(kLongExactWork, &best);
  return best;
}

}  // namespace ft
