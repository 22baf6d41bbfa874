// The times at which buffers crowd: what a search for a placement has to look at.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "runtime/memplan/memplan.h"

namespace ft {

// Buffers over sections. A section is a set of buffers that are live at one time and not all live at any
// other: two buffers meet in time when, and only when, they meet in a section. Sections are in order of time,
// so those of a buffer follow each other; there are at most as many as buffers.
class Sections {
 public:
  struct Span {
    uint32_t begin, end;  // sections [begin, end)
  };

  explicit Sections(absl::Span<const LiveRange> ranges);  // O(n log n)

  uint32_t size() const { return size_; }
  Span of(uint32_t buffer) const { return spans_[buffer]; }

  // The buffers of each section, ascending: as many entries as all spans together are long.
  std::vector<std::vector<uint32_t>> Buffers() const;

 private:
  std::vector<Span> spans_;  // of each buffer
  uint32_t size_ = 0;
};

}  // namespace ft
