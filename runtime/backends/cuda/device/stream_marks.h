// The marks of one stream (marks.h), as the host sees them.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/backends/cuda/device/marks.h"
#include "runtime/backends/cuda/driver.h"
#include "runtime/device/device.h"

namespace ft::cuda {

class StreamMarks {
 public:
  static absl::StatusOr<std::unique_ptr<StreamMarks>> Create(Driver& driver);
  ~StreamMarks();

  // Enqueued on the stream. `info` is what InFlight will name.
  absl::Status TaskBegin(const CommandInfo& info, StreamHandle stream);
  absl::Status TaskEnd(StreamHandle stream);
  absl::Status WaitBegin(StreamHandle stream);
  absl::Status WaitEnd(StreamHandle stream);

  // Both can be called from any thread.
  InFlight in_flight() const;
  int64_t waited_ns() const;

 private:
  explicit StreamMarks(Driver& driver) : driver_(driver) {}

  Driver& driver_;
  MarkState* state_ = nullptr;    // device memory
  MarkReport* report_ = nullptr;  // page-locked
};

}  // namespace ft::cuda
