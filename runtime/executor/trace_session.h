// What the streams of an executor do, into a trace.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "runtime/executor/executor.h"
#include "runtime/metrics/trace.h"

namespace ft {

// Records the steps [0, num_steps). Room for all events is taken when it is made; recording allocates
// nothing.
class TraceSession {
 public:
  // commands_per_step: of all programs that run between BeginStep and EndStep.
  TraceSession(Executor& executor, size_t commands_per_step, int rank, int64_t num_steps);
  ~TraceSession();

  // Around each step of the run, from 0. What runs between steps is not recorded.
  void BeginStep(int64_t step);
  void EndStep();

  void SetLabel(std::string label) { recorder_.SetLabel(std::move(label)); }

  const TraceRecorder& recorder() const { return recorder_; }

 private:
  class StreamTrace;

  Executor& executor_;
  const int64_t num_steps_;
  bool recording_ = false;
  TraceRecorder recorder_;
  std::array<std::unique_ptr<StreamTrace>, kNumStreams> streams_;
};

}  // namespace ft
