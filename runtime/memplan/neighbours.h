// Which buffers meet in time.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "runtime/memplan/memplan.h"

namespace ft {

// The number of pairs that are live at a common index. O(n log n).
uint64_t CountMeetings(absl::Span<const LiveRange> ranges);

// Lists of the buffers that each buffer meets: 8 bytes a pair, and twice as many while they are made.
class Neighbours {
 public:
  explicit Neighbours(absl::Span<const LiveRange> ranges);

  absl::Span<const uint32_t> of(uint32_t buffer) const {
    return absl::MakeConstSpan(lists_).subspan(begin_[buffer], begin_[buffer + 1] - begin_[buffer]);
  }

 private:
  std::vector<uint64_t> begin_;  // of buffer i: lists_[begin_[i] ... begin_[i + 1])
  std::vector<uint32_t> lists_;
};

}  // namespace ft
