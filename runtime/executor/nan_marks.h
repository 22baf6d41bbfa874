// What is known of ranges of memory while a step is replayed (nan_trace.h): of each that was looked at
// whether it has numbers that are not finite, and where these come from.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ft {

class NanMarks {
 public:
  enum Kind : size_t { kNan, kPositive, kNegative };  // NaN, +infinity, -infinity
  static constexpr size_t kKinds = 3;
  // Of numbers of each kind: an index that whoever marks counts with, the earlier the smaller; -1: there are
  // none of them.
  using Origins = std::array<int, kKinds>;
  static constexpr Origins kNone = {-1, -1, -1};

  // Of each kind what was found first.
  static void Merge(Origins& all, const Origins& more);
  // Of the first kind that there is; -1: of none.
  static int AnyOf(const Origins& origins);
  // What was found first of all kinds; -1: of none.
  static int EarliestOf(const Origins& origins);

  struct Known {
    Origins origins = kNone;
    // All of the range was looked at, and it has numbers of just these kinds. Else it may have fewer, where
    // it is a part of what was marked, or more, where nobody has looked.
    bool exact = false;
  };
  Known At(const void* begin, uint64_t bytes) const;

  // What lies there now has such numbers, and no others that are not finite.
  void Set(const void* begin, uint64_t bytes, const Origins& origins);
  // What lies there now nobody has looked at.
  void Forget(const void* begin, uint64_t bytes);

 private:
  struct Mark {
    const char *begin, *end;
    Origins origins;
    bool cut = false;  // of a larger one, whose numbers may have lain elsewhere
  };
  std::vector<Mark> marks_;  // apart from each other
};

}  // namespace ft
