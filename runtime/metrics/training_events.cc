#include "runtime/metrics/training_events.h"

#include <array>
#include <optional>
#include <utility>

#include "runtime/base/resident_memory.h"

namespace ft {
namespace {

std::optional<double> IfAny(uint64_t bytes) {
  return bytes == 0 ? std::nullopt : std::optional<double>(static_cast<double>(bytes));
}

constexpr size_t kMostOutputs = 16;  // of a model

struct Curve {
  std::string_view tag;
  std::optional<double> (*value)(const StepMetrics& metrics);  // none: no point at this step
};

template <typename Struct, typename Member>
std::optional<double> Of(const std::optional<Struct>& values, Member Struct::* member) {
  return values.has_value() ? std::optional<double>(static_cast<double>((*values).*member)) : std::nullopt;
}

constexpr Curve kCurves[] = {
    {"train/loss", [](const StepMetrics& m) { return std::optional<double>(m.loss); }},
    {"train/grad_norm", [](const StepMetrics& m) { return std::optional<double>(m.grad_norm); }},
    {"train/lr", [](const StepMetrics& m) { return std::optional<double>(m.lr); }},
    {"train/skipped", [](const StepMetrics& m) { return std::optional<double>(m.skipped ? 1 : 0); }},
    {"train/loss_scale", [](const StepMetrics& m) { return m.loss_scale; }},
    {"train/counted", [](const StepMetrics& m) { return std::optional<double>(m.counted); }},
    {"throughput/tokens_per_s", [](const StepMetrics& m) { return std::optional<double>(m.tokens_per_s); }},
    {"throughput/samples_per_s", [](const StepMetrics& m) { return std::optional<double>(m.samples_per_s); }},
    {"throughput/step_ms", [](const StepMetrics& m) { return std::optional<double>(m.step_ms); }},
    {"throughput/mfu", [](const StepMetrics& m) { return m.mfu; }},
    {"throughput/utilization", [](const StepMetrics& m) { return m.utilization; }},
    {"communication/exposed_ms", [](const StepMetrics& m) { return m.exposed_ms; }},
    {"memory/arena_bytes", [](const StepMetrics& m) { return IfAny(m.arena_bytes); }},
    {"memory/host_arena_bytes", [](const StepMetrics& m) { return IfAny(m.host_arena_bytes); }},
    {"checkpoint/stall_ms", [](const StepMetrics& m) { return Of(m.save, &SaveCost::stall_ms); }},
    {"checkpoint/seconds", [](const StepMetrics& m) { return Of(m.save, &SaveCost::seconds); }},
    {"checkpoint/bytes", [](const StepMetrics& m) { return Of(m.save, &SaveCost::bytes); }},
    {"ranks/compute_ms_min", [](const StepMetrics& m) { return Of(m.compute, &ComputeSpread::min_ms); }},
    {"ranks/compute_ms_mean", [](const StepMetrics& m) { return Of(m.compute, &ComputeSpread::mean_ms); }},
    {"ranks/compute_ms_max", [](const StepMetrics& m) { return Of(m.compute, &ComputeSpread::max_ms); }},
    {"ranks/slowest", [](const StepMetrics& m) { return Of(m.compute, &ComputeSpread::slowest_rank); }},
};

}  // namespace

TrainingEvents::TrainingEvents(std::unique_ptr<EventFile> file,
                               std::function<void(const std::string& line)> warn)
    : file_(std::move(file)), warn_(std::move(warn)) {
  WarnOnce();
}

void TrainingEvents::WriteText(int64_t step, std::string_view tag, std::string_view markdown) {
  file_->WriteText(step, tag, markdown);
  WarnOnce();
}

void TrainingEvents::Write(const StepMetrics& metrics) {
  std::array<EventScalar, std::size(kCurves) + 1> scalars;
  size_t count = 0;
  for (const Curve& curve : kCurves) {
    if (const std::optional<double> value = curve.value(metrics); value.has_value())
      scalars[count++] = {curve.tag, *value};
  }
  if (ResidentDue()) {
    if (const auto resident = ResidentMemoryOfProcess(); resident.ok())
      scalars[count++] = {"memory/resident_bytes", static_cast<double>(resident->now)};
  }
  file_->WriteScalars(metrics.step, absl::MakeSpan(scalars).first(count));
  WarnOnce();
}

void TrainingEvents::WriteEvaluation(const EvaluationMetrics& metrics) {
  std::array<EventScalar, 1 + kMostOutputs> scalars = {{{"eval/loss", metrics.loss}}};
  size_t count = 1;
  for (const EvaluationOutput& output : metrics.outputs) {
    if (count < scalars.size()) scalars[count++] = {output.tag, output.value};
  }
  file_->WriteScalars(metrics.step, absl::MakeSpan(scalars).first(count));
  WarnOnce();
}

void TrainingEvents::WarnOnce() {
  if (file_->status().ok() || std::exchange(warned_, true) || !warn_) return;
  warn_(std::string(file_->status().message()) + "; the run goes on, but TensorBoard's curves end here");
}

// Reading it takes the system longer than writing a record.
bool TrainingEvents::ResidentDue() {
  const auto now = std::chrono::steady_clock::now();
  if (resident_asked_ != std::chrono::steady_clock::time_point() &&
      now - resident_asked_ < std::chrono::seconds(1))
    return false;
  resident_asked_ = now;
  return true;
}

}  // namespace ft
