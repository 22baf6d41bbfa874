// Which addresses are taken, and when.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "runtime/memplan/sections.h"

namespace ft {

// Addresses taken over spans of sections. A tree over the sections, of which every node knows what is taken
// at some time below it, and what is taken during all of it. Both are kept as unions: lifetimes that nest are
// stacked without gaps, so that a union mostly has a few intervals, however many buffers made it.
class Occupancy {
 public:
  struct Interval {
    uint64_t begin, end;  // bytes
  };

  explicit Occupancy(uint32_t sections);

  void Clear();

  // `when` is not empty.
  void Take(Sections::Span when, Interval taken);

  // Appends lists, each of them ascending and with gaps, of which the union is what is taken at some time of
  // `when`. They are valid until something is taken or cleared.
  void Collect(Sections::Span when, std::vector<absl::Span<const Interval>>* lists) const;

 private:
  using Union = std::vector<Interval>;  // ascending, with gaps between them

  static void Add(Union* all, Interval taken);

  // Calls `partly` for the nodes that meet `when` and also something else, and `wholly` for the highest nodes
  // that lie within it.
  template <typename Partly, typename Wholly>
  void Visit(Sections::Span when, Partly partly, Wholly wholly) const;

  // Node 1 is the root, nodes 2 i and 2 i + 1 are the halves of node i, nodes from leaves_ on are sections.
  uint32_t leaves_;  // a power of two
  std::vector<Union>
      throughout_;               // of each node: taken during all of it, by what ends before its parent does
  std::vector<Union> sometime_;  // of each node: taken at some time, but for what lives throughout its parent
};

}  // namespace ft
