// What the streams of an executor do, into a trace.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "runtime/executor/executor.h"
#include "runtime/executor/step_observer.h"
#include "runtime/metrics/step_metrics.h"
#include "runtime/metrics/trace.h"

namespace ft {

// Records some steps of a run. Room for all events is taken when it is made; recording allocates nothing.
class TraceSession final : public StepObserver {
 public:
  // The steps [first, first + count) are recorded, and nothing that runs between steps.
  struct Steps {
    int64_t first = 0, count = 0;
  };
  // commands_per_step: of all programs that run between BeginStep and EndStep.
  // The plan and the executor must outlive it.
  TraceSession(const proto::Plan& plan, Executor& executor, size_t commands_per_step, int rank, Steps steps);
  ~TraceSession() override;

  void BeginStep(int64_t step) override;
  void EndStep() override;
  void BeginProgram(int program) override {
    program_ = program;
    ++micro_step_;
  }
  // As counters: exposed_ms, mfu, utilization.
  void Count(const StepMetrics& metrics) override;

  void SetRun(TraceRun run) { recorder_.SetRun(std::move(run)); }
  void SetLabel(std::string label) { recorder_.SetLabel(std::move(label)); }
  // A counter that stays as it is: bytes of an arena by class.
  void CountParts(std::string name, absl::Span<const std::pair<std::string_view, uint64_t>> parts) {
    recorder_.CountParts(std::move(name), parts);
  }

  const TraceRecorder& recorder() const { return recorder_; }

 private:
  class StreamTrace;

  bool Has(int64_t step) const { return step >= steps_.first && step - steps_.first < steps_.count; }
  TraceDetails DetailsOf(const CommandInfo& info) const;

  const proto::Plan& plan_;
  Executor& executor_;
  const Steps steps_;
  bool recording_ = false;
  int program_ = 0;                               // that runs
  int64_t step_ = 0, micro_step_ = -1;            // in which it does
  std::vector<std::vector<std::string>> shapes_;  // by program and instruction
  int64_t begin_ns_ = 0;                          // of the last step that was recorded
  TraceRecorder recorder_;
  std::array<std::unique_ptr<StreamTrace>, kNumStreams> streams_;
};

}  // namespace ft
