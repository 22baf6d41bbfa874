// Which bytes of a buffer hold something, on every mesh.
#pragma once

#include "runtime/plan/interval_set.h"
#include "runtime/plan/operand_extent.h"

namespace ft {

// A flat buffer of a unit may hold this rank's slice only. To write the slice into a buffer that held more
// makes the rest stale: other ranks have written theirs, each into its own copy (an optimizer that has
// updated its slice of the parameters; a sum over ranks of gradients, of which each rank got a slice).
// Gathering or writing the whole heals it.
class BufferContents {
 public:
  // Until something is written.
  static BufferContents Nothing() { return {}; }
  static BufferContents Everything() {
    BufferContents contents;
    contents.bytes_.Add({0, Interval::kEverything});
    return contents;
  }

  void Write(const Region& region) {
    if (region.own) {
      own_ = true;
      bytes_ = {};
    } else {
      bytes_.Add(region.bytes);
    }
  }

  bool Holds(const Region& region) const {
    if (region.own) return own_ || bytes_.Contains({0, Interval::kEverything});
    return bytes_.Contains(region.bytes);
  }

  // The own slice, and not the whole.
  bool HoldsOwnOnly() const { return own_ && !bytes_.Contains({0, Interval::kEverything}); }

 private:
  IntervalSet bytes_;
  bool own_ = false;
};

}  // namespace ft
