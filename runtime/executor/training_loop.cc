#include "runtime/executor/training_loop.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "runtime/base/status_macros.h"
#include "runtime/plan/report.h"

namespace ft {

absl::StatusOr<TrainingLoop> TrainingLoop::Create(const proto::Plan& plan, Executor& executor,
                                                  const TrainingOptions& options) {
  FT_ASSIGN_OR_RETURN(const LossScaling scaling, LossScalingOf(plan));
  TrainingLoop loop(plan, executor, options, scaling);
  FT_ASSIGN_OR_RETURN(loop.programs_, FindTrainingPrograms(plan, executor));
  FT_ASSIGN_OR_RETURN(loop.ports_, FindTrainingPorts(plan, executor, loop.programs_.step));
  FT_ASSIGN_OR_RETURN(loop.init_program_, executor.FindProgram("init"));
  FT_ASSIGN_OR_RETURN(loop.init_rng_, FindRngPort(plan, executor, loop.init_program_));
  if (loop.programs_.micro_steps > 1) {
    FT_ASSIGN_OR_RETURN(loop.micro_ports_, FindBatchPorts(plan, executor, loop.programs_.micro));
  }
  loop.flops_per_step_ = static_cast<double>(ModelFlops(plan));
  loop.sequences_per_step_ = plan.batch() * options.world_size * loop.programs_.micro_steps;
  return loop;
}

TrainingLoop::TrainingLoop(const proto::Plan& plan, Executor& executor, const TrainingOptions& options,
                           const LossScaling& scaling)
    : executor_(&executor),
      options_(options),
      seq_len_(plan.seq_len()),
      scaling_(scaling),
      bad_steps_(options.max_bad_steps, scaling.least) {}

absl::Status TrainingLoop::Initialize() {
  InitializeWithoutParameters();
  WriteRng(init_rng_, options_.seed, 0, options_.rank);
  return executor_->Run(init_program_);
}

void TrainingLoop::InitializeWithoutParameters() {
  if (ports_.scaler.empty()) return;
  std::fill(ports_.scaler.begin(), ports_.scaler.end(), 0.0f);
  ports_.scaler[0] = static_cast<float>(scaling_.initial);
}

absl::Status TrainingLoop::Run(const BatchSampler& sampler, const TrainingOutputs& outputs,
                               Evaluator* evaluator) {
  for (int64_t step = 0; step < options_.steps; ++step) {
    FT_RETURN_IF_ERROR(RunStep(step, sampler, outputs));
    const bool last = step + 1 == options_.steps;
    const bool due = last || (options_.eval_every > 0 && (step + 1) % options_.eval_every == 0);
    if (evaluator != nullptr && due) FT_RETURN_IF_ERROR(Evaluate(step, outputs, *evaluator));
    if (!outputs.boundary) continue;
    FT_ASSIGN_OR_RETURN(const bool ends, outputs.boundary(step + 1));
    if (ends) break;
  }
  return evaluator == nullptr || options_.steps > 0 ? absl::OkStatus() : Evaluate(-1, outputs, *evaluator);
}

absl::Status TrainingLoop::RunStep(int64_t step, const BatchSampler& sampler,
                                   const TrainingOutputs& outputs) {
  if (outputs.trace != nullptr) outputs.trace->BeginStep(step);
  const auto begin = std::chrono::steady_clock::now();
  const int64_t exposed_before = executor_->exposed_ns();
  StepMetrics metrics;
  metrics.step = step;
  metrics.lr = options_.lr.At(applied_);
  if (!ports_.scaler.empty()) metrics.loss_scale = ports_.scaler[0];
  const int64_t first = step * programs_.micro_steps, last = first + programs_.micro_steps - 1;
  for (int64_t number = first; number < last; ++number)
    FT_RETURN_IF_ERROR(RunMicroStep(number, sampler, programs_.micro, micro_ports_, outputs.trace));
  if (ports_.lr != nullptr) *ports_.lr = static_cast<float>(metrics.lr);
  if (ports_.step != nullptr) *ports_.step = applied_;
  FT_RETURN_IF_ERROR(RunMicroStep(last, sampler, programs_.step, ports_.batch, outputs.trace));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  if (outputs.trace != nullptr) outputs.trace->EndStep();
  metrics.loss = *ports_.loss;
  metrics.grad_norm = ports_.grad_norm == nullptr ? 0.0 : *ports_.grad_norm;
  metrics.samples_per_s = static_cast<double>(sequences_per_step_) / seconds.count();
  metrics.tokens_per_s = static_cast<double>(sequences_per_step_ * seq_len_) / seconds.count();
  metrics.step_ms = seconds.count() * 1e3;
  metrics.exposed_ms = static_cast<double>(executor_->exposed_ns() - exposed_before) * 1e-6;
  if (outputs.compute_time)
    metrics.compute = outputs.compute_time(step, metrics.step_ms - *metrics.exposed_ms);
  if (options_.peak_flops > 0) metrics.mfu = flops_per_step_ / (seconds.count() * options_.peak_flops);
  metrics.utilization = Utilization();
  metrics.arena_bytes = executor_->arena_bytes();
  metrics.host_arena_bytes = executor_->host_arena_bytes();
  if (outputs.trace != nullptr) outputs.trace->Count(metrics);
  return Report(metrics, outputs);
}

absl::Status TrainingLoop::RunMicroStep(int64_t number, const BatchSampler& sampler, int program,
                                        const BatchPorts& ports, TraceSession* trace) {
  if (trace != nullptr) trace->BeginProgram(program);
  sampler.Fill(number, ports.tokens, ports.targets);
  WriteRng(ports.rng, options_.seed, number, options_.rank);
  return executor_->Run(program);
}

std::optional<double> TrainingLoop::Utilization() {
  if (!options_.utilization) return std::nullopt;
  const auto now = std::chrono::steady_clock::now();
  if (now - utilization_asked_ >= std::chrono::seconds(1)) {
    utilization_asked_ = now;
    const double percent = options_.utilization();
    utilization_ = percent < 0 ? std::nullopt : std::optional<double>(percent / 100);
  }
  return utilization_;
}

absl::Status TrainingLoop::Report(StepMetrics& metrics, const TrainingOutputs& outputs) {
  const StepHealth health{.loss = metrics.loss,
                          .grad_norm = metrics.grad_norm,
                          .loss_scale = metrics.loss_scale,
                          .ranks = ports_.health};
  const BadSteps::Verdict verdict = bad_steps_.Add(health);
  metrics.skipped = verdict != BadSteps::Verdict::kApplied;
  if (!metrics.skipped) ++applied_;
  if (outputs.metrics != nullptr) FT_RETURN_IF_ERROR(outputs.metrics->Write(metrics));
  if (outputs.progress != nullptr) outputs.progress->Update(metrics);
  if (outputs.log != nullptr) outputs.log->Update(metrics);
  if (!metrics.skipped) return absl::OkStatus();
  const std::string line = bad_steps_.Describe(metrics.step, options_.steps, health, options_.world_size);
  if (verdict == BadSteps::Verdict::kSkipped) {
    if (outputs.warn) outputs.warn(line);
    return absl::OkStatus();
  }
  diverged_ = true;
  return absl::FailedPreconditionError(line);
}

absl::Status TrainingLoop::Evaluate(int64_t step, const TrainingOutputs& outputs, Evaluator& evaluator) {
  FT_ASSIGN_OR_RETURN(const EvaluationResult result, evaluator.Run());
  const EvaluationMetrics metrics{.step = step, .loss = result.loss, .tokens = result.tokens};
  if (outputs.metrics != nullptr) FT_RETURN_IF_ERROR(outputs.metrics->WriteEvaluation(metrics));
  if (outputs.progress != nullptr) outputs.progress->ShowEvaluation(metrics);
  if (outputs.log != nullptr) outputs.log->ShowEvaluation(metrics);
  return absl::OkStatus();
}

}  // namespace ft
