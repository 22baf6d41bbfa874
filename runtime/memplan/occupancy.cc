#include "runtime/memplan/occupancy.h"

#include <algorithm>
#include <bit>

namespace ft {

Occupancy::Occupancy(uint32_t sections)
    : leaves_(std::bit_ceil(std::max(sections, 1u))), throughout_(2 * leaves_), sometime_(2 * leaves_) {}

void Occupancy::Clear() {
  for (Union& all : throughout_) all.clear();
  for (Union& all : sometime_) all.clear();
}

void Occupancy::Add(Union* all, Interval taken) {
  // Those that overlap or touch it become one with it.
  const auto from = std::lower_bound(all->begin(), all->end(), taken.begin,
                                     [](const Interval& i, uint64_t begin) { return i.end < begin; });
  auto to = from;
  for (; to != all->end() && to->begin <= taken.end; ++to) {
    taken.begin = std::min(taken.begin, to->begin);
    taken.end = std::max(taken.end, to->end);
  }
  if (from == to) {
    all->insert(from, taken);
  } else {
    *from = taken;
    all->erase(from + 1, to);
  }
}

template <typename Partly, typename Wholly>
void Occupancy::Visit(Sections::Span when, Partly partly, Wholly wholly) const {
  const uint32_t begin = when.begin + leaves_, end = when.end + leaves_;
  for (uint32_t l = begin, r = end; l < r; l >>= 1, r >>= 1) {
    if (l & 1) wholly(l++);
    if (r & 1) wholly(--r);
  }
  // Whatever else meets the span lies above its first or its last section.
  for (int height = 1; leaves_ >> height > 0; ++height) {
    const uint32_t first = begin >> height, last = (end - 1) >> height;
    const bool first_within = first << height >= begin && (first + 1) << height <= end;
    const bool last_within = last << height >= begin && (last + 1) << height <= end;
    if (!first_within) partly(first);
    if (!last_within && last != first) partly(last);
  }
}

void Occupancy::Take(Sections::Span when, Interval taken) {
  Visit(
      when, [&](uint32_t node) { Add(&sometime_[node], taken); },
      [&](uint32_t node) {
        Add(&throughout_[node], taken);
        Add(&sometime_[node], taken);
      });
}

void Occupancy::Collect(Sections::Span when, std::vector<absl::Span<const Interval>>* lists) const {
  auto append = [lists](const Union& all) {
    if (!all.empty()) lists->push_back(all);
  };
  Visit(
      when, [&](uint32_t node) { append(throughout_[node]); },
      [&](uint32_t node) { append(sometime_[node]); });
}

}  // namespace ft
