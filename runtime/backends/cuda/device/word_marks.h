// Marks that the stream's front end writes, without a kernel: words in host memory, and events with timing
// around waits.
//
// A recording can write only what is known when it is made. So tasks are numbered from 1 in each recording,
// and each start of it first writes how many there were before; of what is enqueued without a recording the
// host counts on from there.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "runtime/backends/cuda/device/device_state.h"
#include "runtime/backends/cuda/device/stream_marks.h"
#include "runtime/backends/cuda/device/wait_times.h"

namespace ft::cuda {

class WordMarks final : public StreamMarks {
 public:
  static absl::StatusOr<std::unique_ptr<WordMarks>> Create(DeviceState& state);
  ~WordMarks() override;

  // OK when the driver does in a recording what these marks need: tried on `stream`, which is idle. Leaves
  // nothing behind.
  static absl::Status Try(Driver& driver, StreamHandle stream);

  absl::Status TaskBegin(const CommandInfo& info, StreamHandle stream) override;
  absl::Status TaskEnd(StreamHandle stream) override;
  absl::Status WaitBegin(StreamHandle stream) override;
  absl::Status WaitEnd(StreamHandle stream) override;
  std::unique_ptr<Replay> EndRecording() override;
  void Collect() override;
  InFlight in_flight() const override;
  int64_t waited_ns() const override { return waited_ns_; }

 private:
  class ReplayOfTasks;

  // Page-locked host memory, zero at the beginning; the stream, and that which a recording is started on,
  // write it.
  struct Words {
    uint64_t starts;           // twice the number of recordings started; odd while one writes `before`
    uint64_t before;           // tasks, before `begun` and `finished` were zero
    uint64_t begun, finished;  // tasks
    uint64_t task;             // what the last one was called when it began; written before `begun`
  };

  explicit WordMarks(DeviceState& state) : state_(state), eager_(std::make_shared<WaitTimes>(state.driver)) {}

  DeviceState& state_;
  Words* words_ = nullptr;
  // What the words will say when all that was enqueued has run.
  uint64_t starts_ = 0, before_ = 0, begun_ = 0;
  uint64_t recorded_ = 0;  // tasks, in the recording that is being made
  // Waits: of what was enqueued, of the recording that is being made (null: none so far), and of those
  // started since the stream was waited for.
  const std::shared_ptr<WaitTimes> eager_;
  std::shared_ptr<WaitTimes> recording_;
  std::vector<std::shared_ptr<WaitTimes>> started_;
  std::atomic<int64_t> waited_ns_ = 0;
};

}  // namespace ft::cuda
