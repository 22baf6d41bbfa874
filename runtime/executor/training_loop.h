// Initialises a model and trains it, step after step.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/data/batch_sampler.h"
#include "runtime/executor/executor.h"
#include "runtime/executor/trace_session.h"
#include "runtime/executor/training_ports.h"
#include "runtime/metrics/jsonl.h"
#include "runtime/metrics/progress.h"

namespace ft {

struct TrainingOptions {
  int64_t steps = 0;
  double lr = 3e-4;  // the same for all steps
  uint64_t seed = 42;
  int rank = 0;
  int world_size = 1;
};

// Where the numbers of each step go; null ones are left out.
struct TrainingOutputs {
  MetricsFile* metrics = nullptr;
  Progress* progress = nullptr;
  Progress* log = nullptr;  // the rank's own log
  TraceSession* trace = nullptr;
};

class TrainingLoop {
 public:
  // The executor must outlive the loop; its device must be host_accessible. Errors: FailedPrecondition when
  // the plan lacks a program or port.
  static absl::StatusOr<TrainingLoop> Create(const proto::Plan& plan, Executor& executor,
                                             const TrainingOptions& options);

  // Draws parameters from the seed and zeroes the optimizer state, by the plan's init program. (With weights
  // from a file, LoadWeights takes its place: a fresh arena is zero already.)
  absl::Status Initialize();

  // Runs all steps. Nothing is allocated from the second step on. Errors: those of collectives;
  // FailedPrecondition when loss or gradient norm are not finite any more, after that step's metrics are
  // written: no later step could mend it.
  absl::Status Run(const BatchSampler& sampler, const TrainingOutputs& outputs);

  int train_program() const { return train_program_; }

  // Whether Run ended because a number was not finite. Every rank sees the same numbers, so all of them end
  // so, at the same step.
  bool diverged() const { return diverged_; }

 private:
  TrainingLoop(const proto::Plan& plan, Executor& executor, const TrainingOptions& options);
  absl::Status RunStep(int64_t step, const BatchSampler& sampler, const TrainingOutputs& outputs);
  absl::Status Report(int64_t step, double seconds, const TrainingOutputs& outputs);

  Executor* executor_;
  TrainingOptions options_;
  uint64_t tokens_per_step_;  // over all ranks
  int train_program_ = 0;
  bool diverged_ = false;
  TrainingPorts ports_;
};

}  // namespace ft
