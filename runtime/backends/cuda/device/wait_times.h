// How long a stream waits, by events with timing around each of its waits.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/backends/cuda/driver.h"

namespace ft::cuda {

class WaitTimes {
 public:
  explicit WaitTimes(Driver& driver) : driver_(driver) {}
  ~WaitTimes();
  WaitTimes(const WaitTimes&) = delete;
  WaitTimes& operator=(const WaitTimes&) = delete;

  // Enqueued, or recorded: then they are measured again by each start.
  absl::Status Begin(StreamHandle stream);
  absl::Status End(StreamHandle stream);  // of the one begun last

  // Nanoseconds of all since Clear, which have happened.
  absl::StatusOr<int64_t> Sum() const;
  // Forgets them; their events are used again.
  void Clear() { used_ = 0; }

 private:
  struct Pair {
    EventHandle begin = nullptr, end = nullptr;
  };

  Driver& driver_;
  std::vector<Pair> pairs_;
  size_t used_ = 0;
};

}  // namespace ft::cuda
