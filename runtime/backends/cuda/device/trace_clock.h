// When events with timing happened, as the host's steady clock has it.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/backends/cuda/driver.h"

namespace ft::cuda {

// CUDA tells only how far two events are apart, as float milliseconds: a microsecond after ten seconds. So
// the clock is set anew before each stretch that is observed.
class TraceClock {
 public:
  explicit TraceClock(Driver& driver) : driver_(driver) {}
  ~TraceClock();

  // Sets the clock by an event on `stream`, which is idle; waits for it. What is behind by how long it takes
  // the host to learn of it, tens of microseconds, is the same for all streams.
  absl::Status Set(StreamHandle stream);

  // Nanoseconds of the steady clock at an event that has happened since.
  absl::StatusOr<int64_t> At(EventHandle event) const;

 private:
  Driver& driver_;
  EventHandle base_ = nullptr;
  int64_t base_ns_ = 0;
};

}  // namespace ft::cuda
