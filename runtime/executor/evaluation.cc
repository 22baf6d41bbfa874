#include "runtime/executor/evaluation.h"

#include "runtime/base/numbers.h"
#include "runtime/base/status_macros.h"

namespace ft {
namespace {

constexpr char kLossSum[] = "loss_sum";

}  // namespace

absl::StatusOr<Evaluator> Evaluator::Create(const proto::Plan& plan, Executor& executor,
                                            const EvaluationBatches& batches, uint64_t seed, int rank) {
  Evaluator evaluator(executor, batches, seed, rank);
  FT_ASSIGN_OR_RETURN(evaluator.program_, executor.FindProgram("eval_step"));
  const int program = evaluator.program_;
  FT_ASSIGN_OR_RETURN(evaluator.ports_, FindBatchPorts(plan, executor, program));
  FT_ASSIGN_OR_RETURN(evaluator.loss_sum_, FindSumPort(plan, executor, program, kLossSum));
  for (const proto::Port& port : plan.programs(program).outputs()) {
    if (port.name() == kLossSum) continue;
    FT_ASSIGN_OR_RETURN(const float* const sum, FindSumPort(plan, executor, program, port.name()));
    evaluator.output_sums_.push_back(sum);
    evaluator.outputs_.push_back(
        {.name = port.name(), .key = "eval_" + port.name(), .tag = "eval/" + port.name()});
  }
  return evaluator;
}

absl::StatusOr<EvaluationResult> Evaluator::Run() {
  double sum = 0, count = 0;
  for (EvaluationOutput& output : outputs_) output.value = 0;
  if (batches_->num_batches() > 0) batches_->Fill(0, ports_.inputs);
  for (int64_t batch = 0; batch < batches_->num_batches(); ++batch) {
    WriteRng(ports_.rng, seed_, batch, rank_);
    FT_RETURN_IF_ERROR(executor_->Start(program_));
    if (batch + 1 < batches_->num_batches()) batches_->Fill(batch + 1, ports_.inputs);
    FT_RETURN_IF_ERROR(executor_->Wait());
    sum += loss_sum_[0];
    count += loss_sum_[1];
    for (size_t i = 0; i < outputs_.size(); ++i) outputs_[i].value += output_sums_[i][0];
  }
  for (EvaluationOutput& output : outputs_) output.value = WithoutSignOfNan(output.value / count);
  return EvaluationResult{
      .loss = WithoutSignOfNan(sum / count), .tokens = static_cast<int64_t>(count), .outputs = outputs_};
}

}  // namespace ft
