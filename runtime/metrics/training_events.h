// The curves of a training run in an event file of TensorBoard.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "runtime/metrics/event_file.h"
#include "runtime/metrics/step_metrics.h"

namespace ft {

// Of each step, x being StepMetrics::step:
//   train/       loss, grad_norm, lr, skipped (0 or 1), loss_scale
//   throughput/  tokens_per_s, samples_per_s, step_ms, mfu, utilization
//   communication/exposed_ms
//   memory/      arena_bytes, host_arena_bytes; resident_bytes of the process, at most once a second
// and of each evaluation eval/loss. What a step does not have has no point there.
//
// A run does not end for the sake of its curves: a write that fails is said once, and the file ends there.
class TrainingEvents {
 public:
  // `warn` gets one line when a write fails; may be empty.
  TrainingEvents(std::unique_ptr<EventFile> file, std::function<void(const std::string& line)> warn);

  // Before the first step.
  void WriteText(int64_t step, std::string_view tag, std::string_view markdown);

  // After each step, and each evaluation. Allocates nothing unless it fails.
  void Write(const StepMetrics& metrics);
  void WriteEvaluation(const EvaluationMetrics& metrics);

  // EventFile::status.
  const absl::Status& status() const { return file_->status(); }
  const std::string& path() const { return file_->path(); }

 private:
  void WarnOnce();
  bool ResidentDue();

  std::unique_ptr<EventFile> file_;
  std::function<void(const std::string& line)> warn_;
  bool warned_ = false;
  std::chrono::steady_clock::time_point resident_asked_ = {};
};

}  // namespace ft
