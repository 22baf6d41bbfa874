#include "runtime/executor/evaluation.h"

#include "runtime/base/status_macros.h"

namespace ft {

absl::StatusOr<Evaluator> Evaluator::Create(const proto::Plan& plan, Executor& executor,
                                            const EvaluationBatches& batches, uint64_t seed, int rank) {
  Evaluator evaluator(executor, batches, seed, rank);
  FT_ASSIGN_OR_RETURN(evaluator.program_, executor.FindProgram("eval_step"));
  FT_ASSIGN_OR_RETURN(evaluator.ports_, FindBatchPorts(plan, executor, evaluator.program_));
  FT_ASSIGN_OR_RETURN(evaluator.loss_sum_, FindLossSumPort(plan, executor, evaluator.program_));
  return evaluator;
}

absl::StatusOr<EvaluationResult> Evaluator::Run() {
  double sum = 0, count = 0;
  for (int64_t batch = 0; batch < batches_->num_batches(); ++batch) {
    batches_->Fill(batch, ports_.tokens, ports_.targets);
    WriteRng(ports_.rng, seed_, batch, rank_);
    FT_RETURN_IF_ERROR(executor_->Run(program_));
    sum += loss_sum_[0];
    count += loss_sum_[1];
  }
  return EvaluationResult{.loss = sum / count, .tokens = static_cast<int64_t>(count)};
}

}  // namespace ft
