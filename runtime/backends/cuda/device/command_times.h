// When the commands of an observed stream ran.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "runtime/backends/cuda/device/trace_clock.h"
#include "runtime/backends/cuda/driver.h"
#include "runtime/device/device.h"

namespace ft::cuda {

// Puts an event before and one after each command. Events are kept and used again, so that only the first
// step that is observed creates any.
class CommandTimes {
 public:
  explicit CommandTimes(Driver& driver) : driver_(driver) {}
  ~CommandTimes();

  absl::Status Begin(const CommandInfo& info, StreamHandle stream);
  absl::Status End(StreamHandle stream);  // of the one begun last

  // Tells of all since the last Report. The stream must have been waited for.
  absl::Status Report(const TraceClock& clock, StreamObserver& observer);
  // Forgets them instead.
  void Clear() { used_ = 0; }

 private:
  struct Entry {
    const CommandInfo* info = nullptr;
    EventHandle begin = nullptr, end = nullptr;
  };

  Driver& driver_;
  std::vector<Entry> entries_;
  size_t used_ = 0;
};

}  // namespace ft::cuda
