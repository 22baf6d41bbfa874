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
struct Sections {
  struct Span {
    uint32_t begin, end;  // sections [begin, end)
  };

  std::vector<std::vector<uint32_t>> buffers;  // of each section, ascending
  std::vector<Span> spans;                     // of each buffer

  explicit Sections(absl::Span<const LiveRange> ranges);

  size_t size() const { return buffers.size(); }
};

}  // namespace ft
