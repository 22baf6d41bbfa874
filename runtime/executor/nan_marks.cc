#include "runtime/executor/nan_marks.h"

#include <algorithm>

namespace ft {

void NanMarks::Merge(Origins& all, const Origins& more) {
  for (size_t kind = 0; kind < kKinds; ++kind)
    if (more[kind] >= 0 && (all[kind] < 0 || more[kind] < all[kind])) all[kind] = more[kind];
}

int NanMarks::AnyOf(const Origins& origins) {
  for (const int origin : origins)
    if (origin >= 0) return origin;
  return -1;
}

int NanMarks::EarliestOf(const Origins& origins) {
  int earliest = -1;
  for (const int origin : origins)
    if (origin >= 0 && (earliest < 0 || origin < earliest)) earliest = origin;
  return earliest;
}

NanMarks::Known NanMarks::At(const void* begin, uint64_t bytes) const {
  const char *const from = static_cast<const char*>(begin), *const to = from + bytes;
  Known known;
  uint64_t seen = 0;
  bool elsewhere = false;  // what is marked may lie outside
  for (const Mark& mark : marks_) {
    if (mark.end <= from || to <= mark.begin) continue;
    Merge(known.origins, mark.origins);
    seen += static_cast<uint64_t>(std::min(mark.end, to) - std::max(mark.begin, from));
    elsewhere |= mark.origins != kNone && (mark.cut || mark.begin < from || to < mark.end);
  }
  known.exact = seen == bytes && !elsewhere;
  return known;
}

void NanMarks::Set(const void* begin, uint64_t bytes, const Origins& origins) {
  Forget(begin, bytes);
  const char* const from = static_cast<const char*>(begin);
  if (bytes > 0) marks_.push_back({from, from + bytes, origins});
}

void NanMarks::Forget(const void* begin, uint64_t bytes) {
  const char *const from = static_cast<const char*>(begin), *const to = from + bytes;
  for (size_t i = 0, n = marks_.size(); i < n; ++i) {
    const Mark mark = marks_[i];
    if (mark.end <= from || to <= mark.begin) continue;
    marks_[i].end = std::max(mark.begin, std::min(mark.end, from));  // what lies before
    marks_[i].cut = true;
    if (to < mark.end) marks_.push_back({to, mark.end, mark.origins, /*cut=*/true});
  }
  std::erase_if(marks_, [](const Mark& mark) { return mark.begin == mark.end; });
}

}  // namespace ft
