// The state in a checkpoint by buffer and element, whatever the type of the checkpoint.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "runtime/checkpoint/state/checkpoint_reader.h"

namespace ft {

class StateView {
 public:
  // `reader` must outlive it.
  explicit StateView(CheckpointReader& reader) : reader_(reader) {}

  CheckpointReader& reader() const { return reader_; }
  const StateLayout& state() const { return reader_.layout().state(); }

  // Elements `range` (in the unit, and inside of it) of a buffer of state(). What pads parameters to blocks
  // is in checkpoints of type local alone; it is 0 for others, as in a fresh arena. Errors: those of
  // CheckpointReader::Read.
  absl::Status Read(uint32_t buffer, ElementRange range, void* out);

 private:
  CheckpointReader& reader_;
};

}  // namespace ft
