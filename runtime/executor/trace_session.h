// What the streams of an executor do, into a trace.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "runtime/executor/executor.h"
#include "runtime/metrics/trace.h"

namespace ft {

// Records the steps [0, num_steps). Room for all events is taken when it is made; recording allocates
// nothing.
class TraceSession {
 public:
  TraceSession(Executor& executor, int program, int rank, int64_t num_steps);
  ~TraceSession();

  // Before each step of the run, from 0: begins and ends the recording.
  void BeforeStep(int64_t step);

  const TraceRecorder& recorder() const { return recorder_; }

 private:
  class StreamTrace;

  Executor& executor_;
  const int64_t num_steps_;
  TraceRecorder recorder_;
  std::array<std::unique_ptr<StreamTrace>, kNumStreams> streams_;
};

}  // namespace ft
