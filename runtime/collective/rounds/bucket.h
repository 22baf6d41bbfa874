// The parts of a bucket as one run of bytes.
//
// Each part begins at a multiple of 64 of the run, so that no cut at such a multiple splits an element, and
// what arrives is aligned for its type. The bytes between parts travel, but mean nothing.
#pragma once

#include <algorithm>
#include <cstddef>

#include "absl/types/span.h"
#include "runtime/collective/communicator.h"

namespace ft {

inline constexpr size_t kBucketLine = 64;

inline size_t BytesOf(const GatherPart& part) { return part.bytes; }
inline size_t BytesOf(const ReducePart& part) { return part.count * SizeOf(part.dtype); }

// Length of the run. A part of a gather or of a reduce-scatter counts with one slice.
template <typename Part>
size_t BucketBytes(absl::Span<const Part> parts) {
  size_t end = 0;
  for (const Part& part : parts) {
    const size_t begin = (end + kBucketLine - 1) / kBucketLine * kBucketLine;
    end = begin + BytesOf(part);
  }
  return end;
}

// Calls visit(part, offset in the part, offset behind `begin`, bytes) for what lies in [begin, end) of the
// run.
template <typename Part, typename Visit>
void ForEachPiece(absl::Span<const Part> parts, size_t begin, size_t end, const Visit& visit) {
  size_t part_end = 0;
  for (const Part& part : parts) {
    const size_t part_begin = (part_end + kBucketLine - 1) / kBucketLine * kBucketLine;
    if (part_begin >= end) return;
    part_end = part_begin + BytesOf(part);
    const size_t from = std::max(begin, part_begin), to = std::min(end, part_end);
    if (from < to) visit(part, from - part_begin, from - begin, to - from);
  }
}

}  // namespace ft
