#include "runtime/memplan/exact_search.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace ft {
namespace {

constexpr uint64_t kNone = std::numeric_limits<uint64_t>::max();
constexpr size_t kMaxBuffers = 4096;  // the search may go as deep
constexpr uint64_t kMaxMeetings = uint64_t{1} << 21;
constexpr size_t kMaxFailed = 1'000'000;  // keys, 16 bytes each

// The finaliser of MurmurHash3 (A. Appleby, public domain), a bijection of 64 bits.
uint64_t Mix(uint64_t x) {
  x = (x ^ x >> 33) * 0xff51afd7ed558ccd;
  x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53;
  return x ^ x >> 33;
}

// Summed over a state, these are its key.
absl::uint128 HashOf(uint64_t what, uint64_t value) {
  const uint64_t low = Mix(Mix(2 * what + 1) + value);
  return absl::MakeUint128(Mix(low ^ 0x9e3779b97f4a7c15), low);
}

}  // namespace

bool ExactSearch::Suits(absl::Span<const LiveRange> ranges) {
  return ranges.size() <= kMaxBuffers && CountMeetings(ranges) <= kMaxMeetings;
}

ExactSearch::ExactSearch(absl::Span<const LiveRange> ranges)
    : ranges_(ranges),
      sections_(ranges),
      neighbours_(ranges),
      lowest_(ranges.size()),
      offsets_(ranges.size()),
      placed_(ranges.size()),
      floor_(sections_.size()),
      left_(sections_.size()),
      crossing_(sections_.size()),
      by_lowest_(sections_.Buffers()),
      is_touched_(sections_.size()) {
  for (uint32_t buffer = 0; buffer < ranges.size(); ++buffer) {
    const Span span = sections_.of(buffer);
    for (uint32_t s = span.begin; s < span.end; ++s) {
      left_[s] += ranges[buffer].size;
      crossing_[s] += s + 1 < span.end;
    }
  }
}

Verdict ExactSearch::Fit(uint64_t height, absl::Span<const uint32_t> priority, uint64_t work) {
  Reset(height);
  work_limit_ = work_ + work;
  Touch({0, sections_.size()});
  const bool fits = Propagate() && Solve({priority.begin(), priority.end()}, {0, sections_.size()});
  if (fits) return Verdict::kFits;
  return work_ > work_limit_ ? Verdict::kUnknown : Verdict::kTooLow;
}

void ExactSearch::Reset(uint64_t height) {
  TakeBack(0);
  // What cannot be placed below a height cannot be placed below a lower one.
  if (height > failed_height_) failed_.clear();
  height_ = failed_height_ = height;
}

bool ExactSearch::Solve(const Buffers& candidates, Span span) {
  Buffers left = candidates;
  std::vector<absl::uint128> keys;  // of states that have no solution if this call finds none
  bool solved = false;
  while (true) {
    std::erase_if(left, [&](uint32_t buffer) { return placed_[buffer]; });
    work_ += left.size() + (span.end - span.begin);
    if (left.empty()) return true;
    if (work_ > work_limit_) return false;
    const std::vector<Span> parts = PartsOf(span);
    if (parts.size() > 1) {
      if (SolveParts(left, parts)) return true;
      break;
    }
    span = parts.front();
    const absl::uint128 key = KeyOf(left, span);
    if (failed_.contains(key)) break;
    keys.push_back(key);
    if (!Decide(left, span, &solved)) break;
    if (solved) return true;
  }
  if (work_ <= work_limit_ && failed_.size() < kMaxFailed) failed_.insert(keys.begin(), keys.end());
  return false;
}

bool ExactSearch::Decide(const Buffers& left, Span span, bool* solved) {
  uint32_t buffer = left.front();
  for (uint32_t other : left) {
    if (lowest_[other] < lowest_[buffer]) buffer = other;
  }
  // All others lie at least as low as this one could, so it cannot lie there on top of one of them.
  if (FloorBelow(buffer) < lowest_[buffer]) return KeepFromLowest(buffer);
  const size_t mark = changes_.size();
  if (Place(buffer) && Solve(left, span)) return *solved = true;
  if (work_ > work_limit_) return false;
  TakeBack(mark);
  return KeepFromLowest(buffer);
}

bool ExactSearch::SolveParts(const Buffers& left, const std::vector<Span>& parts) {
  // The tightest first: where one fails the others need not be tried.
  std::vector<std::pair<uint64_t, Span>> by_slack;
  for (Span part : parts) {
    uint64_t slack = kNone;
    for (uint32_t s = part.begin; s < part.end; ++s) {
      if (left_[s] > 0) slack = std::min(slack, height_ - floor_[s] - left_[s]);
    }
    by_slack.emplace_back(slack, part);
  }
  std::stable_sort(by_slack.begin(), by_slack.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [slack, part] : by_slack) {
    Buffers inside;
    for (uint32_t buffer : left) {
      const Span span = sections_.of(buffer);
      if (span.begin >= part.begin && span.end <= part.end) inside.push_back(buffer);
    }
    work_ += left.size();
    if (!Solve(inside, part)) return false;
  }
  return true;
}

std::vector<Sections::Span> ExactSearch::PartsOf(Span span) {
  std::vector<Span> parts;
  bool inside = false;
  for (uint32_t s = span.begin; s < span.end; ++s) {
    if (left_[s] == 0) {
      inside = false;
      continue;
    }
    if (!inside) parts.push_back({s, s});
    parts.back().end = s + 1;
    inside = crossing_[s] > 0;
  }
  return parts;
}

absl::uint128 ExactSearch::KeyOf(const Buffers& left, Span span) {
  absl::uint128 key = 0;
  for (uint32_t buffer : left) key += HashOf(uint64_t{2} * buffer, lowest_[buffer]);
  for (uint32_t s = span.begin; s < span.end; ++s) {
    if (left_[s] > 0) key += HashOf(uint64_t{2} * s + 1, floor_[s]);
  }
  work_ += left.size() + (span.end - span.begin);
  return key;
}

// At its lowest offset.
bool ExactSearch::Place(uint32_t buffer) {
  const uint64_t top = lowest_[buffer] + ranges_[buffer].size;
  const Span span = sections_.of(buffer);
  offsets_[buffer] = lowest_[buffer];
  for (uint32_t s = span.begin; s < span.end; ++s) {
    changes_.push_back({Change::kFloor, s, floor_[s]});
    floor_[s] = top;
    left_[s] -= ranges_[buffer].size;
    crossing_[s] -= s + 1 < span.end;
  }
  placed_[buffer] = true;
  changes_.push_back({Change::kPlaced, buffer, 0});
  Touch(span);
  work_ += neighbours_.of(buffer).size();
  for (uint32_t other : neighbours_.of(buffer)) {
    if (!placed_[other] && lowest_[other] < top) Raise(other, top);
  }
  return Propagate();
}

// Then it lies on one that is not placed yet.
bool ExactSearch::KeepFromLowest(uint32_t buffer) {
  uint64_t lowest = kNone;
  work_ += neighbours_.of(buffer).size();
  for (uint32_t other : neighbours_.of(buffer)) {
    if (!placed_[other]) lowest = std::min(lowest, lowest_[other] + ranges_[other].size);
  }
  if (lowest == kNone) return false;
  Raise(buffer, lowest);
  return Propagate();
}

// Where small buffers raise each other over much height this alone may take all the work that is allowed.
bool ExactSearch::Propagate() {
  bool possible = true;
  while (!touched_.empty()) {
    const uint32_t section = touched_.back();
    touched_.pop_back();
    is_touched_[section] = false;
    possible = possible && work_ <= work_limit_ && PropagateIn(section);
  }
  return possible;
}

bool ExactSearch::PropagateIn(uint32_t section) {
  Buffers& order = by_lowest_[section];
  work_ += order.size();
  // By insertion, since little has changed since the last time. Placed buffers come first: the others lie
  // above them.
  for (size_t i = 1; i < order.size(); ++i) {
    const uint32_t buffer = order[i];
    size_t to = i;
    for (; to > 0 && lowest_[order[to - 1]] > lowest_[buffer]; --to) order[to] = order[to - 1];
    work_ += i - to;
    order[to] = buffer;
  }
  const auto begin =
      std::find_if(order.begin(), order.end(), [&](uint32_t buffer) { return !placed_[buffer]; });
  const absl::Span<const uint32_t> left = absl::MakeConstSpan(order).subspan(begin - order.begin());
  // Those from the i-th on lie above the lowest offset of the i-th (J. R. Jackson's bound of one machine with
  // release times).
  uint64_t bytes = 0;
  for (size_t i = left.size(); i-- > 0;) {
    bytes += ranges_[left[i]].size;
    if (lowest_[left[i]] > height_ || bytes > height_ - lowest_[left[i]]) return false;
  }
  return RaiseThoseNotFirst(left, bytes);
}

// A buffer with everything else of the section above it would pass the height, so something lies below it.
// `left` is sorted by lowest offset and has `bytes_left` in all.
bool ExactSearch::RaiseThoseNotFirst(absl::Span<const uint32_t> left, uint64_t bytes_left) {
  if (left.empty() || lowest_[left.back()] <= height_ - bytes_left) return true;
  uint64_t first_top = kNone, second_top = kNone;
  uint32_t first = 0;
  for (uint32_t buffer : left) {
    const uint64_t top = lowest_[buffer] + ranges_[buffer].size;
    if (top < first_top) {
      second_top = first_top;
      first_top = top;
      first = buffer;
    } else {
      second_top = std::min(second_top, top);
    }
  }
  for (size_t i = left.size(); i-- > 0 && lowest_[left[i]] > height_ - bytes_left;) {
    const uint64_t below = left[i] == first ? second_top : first_top;
    if (below == kNone) return false;
    if (lowest_[left[i]] < below) Raise(left[i], below);
  }
  return true;
}

void ExactSearch::Raise(uint32_t buffer, uint64_t lowest) {
  changes_.push_back({Change::kLowest, buffer, lowest_[buffer]});
  lowest_[buffer] = lowest;
  Touch(sections_.of(buffer));
}

void ExactSearch::Touch(Span sections) {
  work_ += sections.end - sections.begin;
  for (uint32_t s = sections.begin; s < sections.end; ++s) {
    if (!is_touched_[s]) touched_.push_back(s);
    is_touched_[s] = true;
  }
}

uint64_t ExactSearch::FloorBelow(uint32_t buffer) {
  const Span span = sections_.of(buffer);
  work_ += span.end - span.begin;
  return *std::max_element(floor_.begin() + span.begin, floor_.begin() + span.end);
}

void ExactSearch::TakeBack(size_t mark) {
  for (; changes_.size() > mark; changes_.pop_back()) {
    const Change& change = changes_.back();
    if (change.kind == Change::kLowest) lowest_[change.index] = change.before;
    if (change.kind == Change::kFloor) floor_[change.index] = change.before;
    if (change.kind != Change::kPlaced) continue;
    placed_[change.index] = false;
    const Span span = sections_.of(change.index);
    for (uint32_t s = span.begin; s < span.end; ++s) {
      left_[s] += ranges_[change.index].size;
      crossing_[s] += s + 1 < span.end;
    }
  }
}

}  // namespace ft
