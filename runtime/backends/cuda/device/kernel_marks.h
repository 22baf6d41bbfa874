// Marks that are kernels of one thread (marks.h), each of which takes the device some microseconds.
#pragma once

#include <memory>

#include "runtime/backends/cuda/device/marks.h"
#include "runtime/backends/cuda/device/stream_marks.h"

namespace ft::cuda {

class KernelMarks final : public StreamMarks {
 public:
  static absl::StatusOr<std::unique_ptr<KernelMarks>> Create(Driver& driver);
  ~KernelMarks() override;

  absl::Status TaskBegin(const CommandInfo& info, StreamHandle stream) override;
  absl::Status TaskEnd(StreamHandle stream) override;
  absl::Status WaitBegin(StreamHandle stream) override;
  absl::Status WaitEnd(StreamHandle stream) override;
  InFlight in_flight() const override;
  int64_t waited_ns() const override;

 private:
  explicit KernelMarks(Driver& driver) : driver_(driver) {}

  Driver& driver_;
  MarkState* state_ = nullptr;    // device memory
  MarkReport* report_ = nullptr;  // page-locked
};

}  // namespace ft::cuda
