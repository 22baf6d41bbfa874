// Which documents lie together in a sequence.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace ft {

// Documents in packs of at most `room` each.
struct Packs {
  // Pack k is documents[begins[k]] ... documents[begins[k + 1] - 1], ascending; packs in the order of their
  // first documents.
  std::vector<uint32_t> documents;
  std::vector<uint32_t> begins = {0};

  int64_t count() const { return static_cast<int64_t>(begins.size()) - 1; }
};

// Best fit decreasing (D. Johnson, "Near-optimal bin packing algorithms", 1973): documents from the longest
// to the shortest, each into the fullest pack that has room for it, of equally full ones into the one that
// was opened first; a new one where none has. At most 11/9 of the least number of packs, and 6/9 of one.
// lengths[i], in [0, room], is that of document i, fewer than 2^32; those of length 0 are in no pack. O(n +
// room) memory and O((n + room) log room) time.
Packs PackBestFit(absl::Span<const uint32_t> lengths, uint32_t room);

}  // namespace ft
