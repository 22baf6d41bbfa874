// What the streams, memories and recordings of one CUDA device share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/backends/cuda/device/stream_marks.h"
#include "runtime/backends/cuda/device/trace_clock.h"
#include "runtime/backends/cuda/driver.h"
#include "runtime/backends/cuda/platform.h"
#include "runtime/base/first_failure.h"

namespace ft::cuda {

struct DeviceState {
  // `driver` and `ranges`, which may be null, must outlive the state.
  DeviceState(Driver& driver, int number, ProfilerRanges* ranges);

  // Every entry from outside begins with this: CUDA's current device belongs to the thread. Costs a
  // comparison when it is current already. A failure becomes the device's; false then.
  bool MakeCurrent();

  // Keeps a failure as the device's status; true when there was none.
  bool Check(absl::Status status);

  Driver& driver;
  const int number;
  ProfilerRanges* const ranges;
  FirstFailure failure;
  TraceClock clock;
  int num_observed = 0;                  // streams with an observer
  bool recording = false;                // what is enqueued now goes into a recording
  std::vector<StreamMarks*> marks = {};  // of its streams
  bool word_marks = false;               // whether they are WordMarks

 private:
  const uint64_t id_;  // of all devices that this process has had
};

}  // namespace ft::cuda
