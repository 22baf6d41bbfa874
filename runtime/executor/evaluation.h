// The loss on data that is not trained on.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/data/evaluation_batches.h"
#include "runtime/executor/executor.h"
#include "runtime/executor/training_ports.h"
#include "runtime/metrics/step_metrics.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

struct EvaluationResult {
  double loss = 0;                             // mean over the targets, all ranks; NaN where none counts
  int64_t tokens = 0;                          // targets that counted; examples, where the loss counts none
  absl::Span<const EvaluationOutput> outputs;  // the same means of the model's named outputs
};

// Runs the plan's eval_step over all batches. Its ports rng are {seed, number of the batch, rank}, so that
// each evaluation draws the same numbers. Parameters and optimizer state are only read.
class Evaluator {
 public:
  // executor and batches must outlive it. Errors: FailedPrecondition when the plan has no program eval_step,
  // or not the ports that it needs.
  static absl::StatusOr<Evaluator> Create(const proto::Plan& plan, Executor& executor,
                                          const EvaluationBatches& batches, uint64_t seed, int rank);

  // All ranks together. Allocates nothing unless it fails. The result is good until the next. Errors: those
  // of collectives.
  absl::StatusOr<EvaluationResult> Run();

 private:
  Evaluator(Executor& executor, const EvaluationBatches& batches, uint64_t seed, int rank)
      : executor_(&executor), batches_(&batches), seed_(seed), rank_(rank) {}

  Executor* executor_;
  const EvaluationBatches* batches_;
  uint64_t seed_;
  int rank_;
  int program_ = 0;
  BatchPorts ports_;
  const float* loss_sum_ = nullptr;
  std::vector<const float*> output_sums_;
  std::vector<EvaluationOutput> outputs_;
};

}  // namespace ft
