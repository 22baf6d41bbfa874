#include "runtime/executor/training_loop.h"

#include <chrono>
#include <cmath>

#include "absl/strings/str_format.h"
#include "runtime/base/status_macros.h"

namespace ft {
namespace {

void WriteRng(int64_t* rng, const TrainingOptions& options, int64_t step) {
  if (rng == nullptr) return;
  rng[0] = static_cast<int64_t>(options.seed);
  rng[1] = step;
  rng[2] = options.rank;
}

}  // namespace

absl::StatusOr<TrainingLoop> TrainingLoop::Create(const proto::Plan& plan, Executor& executor,
                                                  const TrainingOptions& options) {
  TrainingLoop loop(plan, executor, options);
  FT_ASSIGN_OR_RETURN(loop.train_program_, executor.FindProgram("train_step"));
  FT_ASSIGN_OR_RETURN(loop.ports_, FindTrainingPorts(plan, executor, loop.train_program_));
  return loop;
}

TrainingLoop::TrainingLoop(const proto::Plan& plan, Executor& executor, const TrainingOptions& options)
    : executor_(&executor),
      options_(options),
      tokens_per_step_(plan.batch() * plan.seq_len() * options.world_size) {}

absl::Status TrainingLoop::Initialize() {
  FT_ASSIGN_OR_RETURN(const int program, executor_->FindProgram("init"));
  FT_ASSIGN_OR_RETURN(int64_t* const rng, FindRngPort(*executor_, program));
  WriteRng(rng, options_, 0);
  return executor_->Run(program);
}

absl::Status TrainingLoop::Run(const BatchSampler& sampler, const TrainingOutputs& outputs) {
  for (int64_t step = 0; step < options_.steps; ++step) FT_RETURN_IF_ERROR(RunStep(step, sampler, outputs));
  return absl::OkStatus();
}

absl::Status TrainingLoop::RunStep(int64_t step, const BatchSampler& sampler,
                                   const TrainingOutputs& outputs) {
  if (outputs.trace != nullptr) outputs.trace->BeforeStep(step);
  const auto begin = std::chrono::steady_clock::now();
  sampler.Fill(step, ports_.tokens, ports_.targets);
  if (ports_.lr != nullptr) *ports_.lr = static_cast<float>(options_.lr);
  if (ports_.step != nullptr) *ports_.step = step;
  WriteRng(ports_.rng, options_, step);
  FT_RETURN_IF_ERROR(executor_->Run(train_program_));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  return Report(step, seconds.count(), outputs);
}

absl::Status TrainingLoop::Report(int64_t step, double seconds, const TrainingOutputs& outputs) {
  StepMetrics metrics;
  metrics.step = step;
  metrics.loss = *ports_.loss;
  metrics.grad_norm = ports_.grad_norm == nullptr ? 0.0 : *ports_.grad_norm;
  metrics.lr = options_.lr;
  metrics.tokens_per_s = static_cast<double>(tokens_per_step_) / seconds;
  metrics.step_ms = seconds * 1e3;
  metrics.arena_bytes = executor_->arena_bytes();
  if (outputs.metrics != nullptr) FT_RETURN_IF_ERROR(outputs.metrics->Write(metrics));
  if (outputs.progress != nullptr) outputs.progress->Update(metrics);
  if (outputs.log != nullptr) outputs.log->Update(metrics);
  if (std::isfinite(metrics.loss) && std::isfinite(metrics.grad_norm)) return absl::OkStatus();
  diverged_ = true;
  return absl::FailedPreconditionError(
      absl::StrFormat("step %d: loss %g, gradient norm %g: training has diverged; try a smaller --lr", step,
                      metrics.loss, metrics.grad_norm));
}

}  // namespace ft
