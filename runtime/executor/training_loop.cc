#include "runtime/executor/training_loop.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/numbers.h"
#include "runtime/base/status_macros.h"
#include "runtime/executor/find_nan.h"
#include "runtime/executor/nan_trace.h"
#include "runtime/plan/inputs.h"
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
    : plan_(&plan),
      executor_(&executor),
      options_(options),
      seq_len_(plan.seq_len()),
      takes_tokens_(TakesTokens(plan)),
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

absl::Status TrainingLoop::Resume(const TrainingPosition& position, const TrainingStability& stability) {
  InitializeWithoutParameters();
  if (!stability.scaler.empty() && !ports_.scaler.empty() && stability.scaler.size() != ports_.scaler.size())
    return absl::InvalidArgumentError(absl::StrCat("the state of loss scaling has ", stability.scaler.size(),
                                                   " numbers there, and ", ports_.scaler.size(), " here"));
  if (!ports_.scaler.empty() && !scaling_.is_fixed)
    std::copy(stability.scaler.begin(), stability.scaler.end(), ports_.scaler.begin());
  bad_steps_.Restore(stability.bad_in_a_row, stability.overflows_in_a_row);
  position_ = position;
  resumed_ = true;
  return absl::OkStatus();
}

TrainingStability TrainingLoop::stability() const {
  return {.bad_in_a_row = bad_steps_.bad_in_a_row(),
          .overflows_in_a_row = bad_steps_.overflows_in_a_row(),
          .scaler = {ports_.scaler.begin(), ports_.scaler.end()}};
}

absl::Status TrainingLoop::Run(const BatchSampler& sampler, const TrainingOutputs& outputs,
                               Evaluator* evaluator) {
  outputs_ = &outputs;
  reported_ = absl::OkStatus();
  absl::Status status = RunSteps(sampler, outputs, evaluator);
  status.Update(Report());  // what was done stays done, however it ended
  outputs_ = nullptr;
  return status;
}

absl::Status TrainingLoop::RunSteps(const BatchSampler& sampler, const TrainingOutputs& outputs,
                                    Evaluator* evaluator) {
  for (int64_t step = position_.steps; step < options_.steps; ++step) {
    FT_RETURN_IF_ERROR(RunStep(step, sampler, outputs));
    const bool due = options_.eval_every > 0 && (step + 1) % options_.eval_every == 0;
    std::optional<double> eval_loss;
    if (evaluator != nullptr && (due || step + 1 == options_.steps)) {
      FT_ASSIGN_OR_RETURN(eval_loss, Evaluate(step, outputs, *evaluator));
    }
    if (!outputs.boundary) continue;
    FT_ASSIGN_OR_RETURN(const bool ends, outputs.boundary(step + 1, eval_loss));
    if (ends) break;
  }
  return evaluator == nullptr || options_.steps > 0 || resumed_ ? absl::OkStatus()
                                                                : Evaluate(-1, outputs, *evaluator).status();
}

absl::Status TrainingLoop::RunStep(int64_t step, const BatchSampler& sampler,
                                   const TrainingOutputs& outputs) {
  if (outputs.observer != nullptr) outputs.observer->BeginStep(step);
  const auto begin = std::chrono::steady_clock::now();
  const int64_t exposed_before = executor_->exposed_ns();
  StepMetrics metrics;
  metrics.step = step;
  metrics.lr = options_.lr.At(position_.applied);
  if (!ports_.scaler.empty()) metrics.loss_scale = ports_.scaler[0];
  std::copy(ports_.scaler.begin(), ports_.scaler.end(), scaler_before_.begin());
  WriteUpdate(ports_, metrics.lr, position_.applied);
  for (int64_t i = 0; i < MicroSteps(); ++i) FT_RETURN_IF_ERROR(RunMicroStep(sampler, i, outputs));
  Enter(outputs.activity, Activity::kReporting, step);
  position_.sequences += static_cast<int64_t>(sequences_per_step_);
  ++position_.steps;
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  if (outputs.observer != nullptr) outputs.observer->EndStep();
  metrics.loss = WithoutSignOfNan(*ports_.loss);
  metrics.grad_norm = ports_.grad_norm == nullptr ? 0.0 : WithoutSignOfNan(*ports_.grad_norm);
  if (!ports_.counted.empty() && ports_.counted[0] != ports_.counted[1]) metrics.counted = ports_.counted[0];
  metrics.samples_per_s = static_cast<double>(sequences_per_step_) / seconds.count();
  metrics.tokens_per_s = static_cast<double>(sequences_per_step_ * seq_len_) / seconds.count();
  metrics.counts_tokens = takes_tokens_;
  metrics.step_ms = seconds.count() * 1e3;
  metrics.exposed_ms = static_cast<double>(executor_->exposed_ns() - exposed_before) * 1e-6;
  if (outputs.save_cost) metrics.save = outputs.save_cost();
  if (options_.peak_flops > 0) metrics.mfu = flops_per_step_ / (seconds.count() * options_.peak_flops);
  metrics.utilization = Utilization();
  metrics.arena_bytes = executor_->arena_bytes();
  metrics.host_arena_bytes = executor_->host_arena_bytes();
  if (outputs.observer != nullptr) outputs.observer->Count(metrics);
  if (outputs.measured) outputs.measured(metrics);
  return Settle(metrics, sampler, outputs);
}

// While the program runs, the host does what else there is to do.
absl::Status TrainingLoop::RunMicroStep(const BatchSampler& sampler, int64_t micro_step,
                                        const TrainingOutputs& outputs) {
  const int program = ProgramOf(micro_step);
  const BatchPorts& ports = PortsOf(micro_step);
  if (outputs.observer != nullptr) outputs.observer->BeginProgram(program);
  if (runs_when_read_ != executor_->runs()) {
    Enter(outputs.activity, Activity::kReading, position_.steps, micro_step);
    sampler.Fill(taken_, ports.inputs);
  }
  ++taken_;
  WriteRng(ports.rng, options_.seed, position_.micro_steps++, options_.rank);
  WriteInverseRanks(ports.inverse_ranks, options_.world_size);
  Enter(outputs.activity, Activity::kComputing, position_.steps, micro_step);
  FT_RETURN_IF_ERROR(executor_->Start(program));
  if (unreported_.has_value()) Enter(outputs.activity, Activity::kReporting, unreported_->step);
  const absl::Status reported = Report();
  if (reported.ok()) ReadAhead(sampler, micro_step, outputs);
  Enter(outputs.activity, Activity::kComputing, position_.steps, micro_step);
  FT_RETURN_IF_ERROR(executor_->Wait());
  return reported;
}

// The batch that comes after this micro-step, if one does.
void TrainingLoop::ReadAhead(const BatchSampler& sampler, int64_t micro_step,
                             const TrainingOutputs& outputs) {
  if (IsLast(micro_step) && position_.steps + 1 == options_.steps) return;
  Enter(outputs.activity, Activity::kReadingAhead, position_.steps, micro_step);
  sampler.Fill(taken_, PortsOf(IsLast(micro_step) ? 0 : micro_step + 1).inputs);
  runs_when_read_ = executor_->runs();
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

absl::Status TrainingLoop::Settle(StepMetrics& metrics, const BatchSampler& sampler,
                                  const TrainingOutputs& outputs) {
  const StepNumbers numbers{.loss = metrics.loss,
                            .grad_norm = metrics.grad_norm,
                            .loss_scale = metrics.loss_scale,
                            .counts_nothing = metrics.counted == 0};
  const BadSteps::Verdict verdict = bad_steps_.Add(numbers);
  metrics.skipped = verdict != BadSteps::Verdict::kApplied;
  unreported_ = metrics;
  if (!metrics.skipped) {
    ++position_.applied;
    return absl::OkStatus();
  }
  FT_RETURN_IF_ERROR(Report());
  std::string line = bad_steps_.Describe(metrics.step, options_.steps, numbers);
  const bool looks = options_.find_nan && bad_steps_.begins();
  if (looks) {
    FT_ASSIGN_OR_RETURN(const std::string found, FindNan(sampler, outputs));
    found_ = absl::StrCat("step ", metrics.step + 1, "/", options_.steps, " is not finite: ", found);
  }
  if (verdict == BadSteps::Verdict::kSkipped) {
    if (outputs.warn) outputs.warn(line);
    if (outputs.warn && looks) outputs.warn(found_);
    return absl::OkStatus();
  }
  if (!found_.empty()) absl::StrAppend(&line, "; ", found_);
  diverged_ = true;
  return absl::FailedPreconditionError(line);
}

absl::Status TrainingLoop::Report() {
  if (!unreported_.has_value()) return reported_;
  const StepMetrics metrics = *std::exchange(unreported_, std::nullopt);
  reported_.Update(Write(metrics));
  return reported_;
}

absl::Status TrainingLoop::Write(StepMetrics metrics) const {
  const TrainingOutputs& outputs = *outputs_;
  if (outputs.compute_time)
    metrics.compute = outputs.compute_time(metrics.step, metrics.step_ms - *metrics.exposed_ms);
  if (outputs.metrics != nullptr) FT_RETURN_IF_ERROR(outputs.metrics->Write(metrics));
  if (outputs.progress != nullptr) outputs.progress->Update(metrics);
  if (outputs.log != nullptr) outputs.log->Update(metrics);
  if (outputs.events != nullptr) outputs.events->Write(metrics);
  return absl::OkStatus();
}

// A step that was not applied has left all as it was but the loss scale and what it gave: run again it is the
// same step. Its batches are read again.
absl::StatusOr<std::string> TrainingLoop::FindNan(const BatchSampler& sampler,
                                                  const TrainingOutputs& outputs) {
  std::array<float, 3> scaler_after = {};
  std::copy(ports_.scaler.begin(), ports_.scaler.end(), scaler_after.begin());
  std::copy_n(scaler_before_.begin(), ports_.scaler.size(), ports_.scaler.begin());
  NanTrace trace(*plan_, *executor_);
  for (int64_t i = 0; i < MicroSteps(); ++i) {
    const BatchPorts& ports = PortsOf(i);
    Enter(outputs.activity, Activity::kReplaying, position_.steps - 1, i);
    sampler.Fill(taken_ - MicroSteps() + i, ports.inputs);
    WriteRng(ports.rng, options_.seed, position_.micro_steps - MicroSteps() + i, options_.rank);
    WriteInverseRanks(ports.inverse_ranks, options_.world_size);
    FT_RETURN_IF_ERROR(trace.Replay(ProgramOf(i), i));
  }
  std::copy_n(scaler_after.begin(), ports_.scaler.size(), ports_.scaler.begin());
  Enter(outputs.activity, Activity::kReporting, position_.steps - 1);
  FT_ASSIGN_OR_RETURN(const std::vector<NanFinding> by_rank,
                      GatherFindings(FindingOf(*plan_, trace), outputs.world));
  return EarliestFinding(by_rank);
}

// None where no target counts, which is warned of.
absl::StatusOr<std::optional<double>> TrainingLoop::Evaluate(int64_t step, const TrainingOutputs& outputs,
                                                             Evaluator& evaluator) {
  FT_RETURN_IF_ERROR(Report());
  Enter(outputs.activity, Activity::kEvaluating, step);
  FT_ASSIGN_OR_RETURN(const EvaluationResult result, evaluator.Run());
  const EvaluationMetrics metrics{.step = step,
                                  .loss = result.loss,
                                  .tokens = result.tokens,
                                  .counted = takes_tokens_ ? "tokens" : "examples",
                                  .outputs = result.outputs};
  if (outputs.metrics != nullptr) FT_RETURN_IF_ERROR(outputs.metrics->WriteEvaluation(metrics));
  if (result.tokens == 0) {
    if (outputs.warn)
      outputs.warn(absl::StrCat("step ", step + 1, "/", options_.steps,
                                ": the evaluation has no loss: none of its targets counts"));
    return std::nullopt;
  }
  if (outputs.progress != nullptr) outputs.progress->ShowEvaluation(metrics);
  if (outputs.log != nullptr) outputs.log->ShowEvaluation(metrics);
  if (outputs.events != nullptr) outputs.events->WriteEvaluation(metrics);
  return result.loss;
}

}  // namespace ft
