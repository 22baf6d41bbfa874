#include "tools/ftexec/steady_steps.h"

#include <algorithm>
#include <cmath>

#include "fmt/format.h"
#include "runtime/cost/simulate.h"

namespace ft {
namespace {

constexpr size_t kKept = 256;

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

SteadySteps::SteadySteps(int64_t traced_steps) : first_(std::max(kSettling, traced_steps)) {
  step_ms_.reserve(kKept);
  exposed_ms_.reserve(kKept);
}

void SteadySteps::Add(const StepMetrics& metrics) {
  last_number_ = metrics.step + 1;
  if (steps_++ < first_) return;
  const size_t at = static_cast<size_t>(counted_++) % kKept;
  if (at == step_ms_.size()) {
    step_ms_.push_back(0);
    exposed_ms_.push_back(0);
  }
  step_ms_[at] = metrics.step_ms;
  exposed_ms_[at] = metrics.exposed_ms.value_or(0);
}

double SteadySteps::MedianMs() const { return Median(step_ms_); }

double SteadySteps::MedianExposedMs() const { return Median(exposed_ms_); }

std::string PredictedLine(const SteadySteps& times, const proto::Plan& plan, const BoundPlan& bound,
                          bool on_gpu) {
  if (times.counted() == 0 || !plan.has_target() || plan.target().cuda() != on_gpu) return "";
  const SimulatedProgram step = SimulateStep(plan, bound, plan.target());
  const double ms = times.MedianMs(), exposed = times.MedianExposedMs();
  const double predicted = step.seconds * 1e3, predicted_exposed = step.exposed_seconds * 1e3;
  if (!(predicted > 0)) return "";
  const double rest = ms - exposed, predicted_rest = predicted - predicted_exposed;
  const bool is_communication = std::abs(exposed - predicted_exposed) > std::abs(rest - predicted_rest);
  return fmt::format(
      "a step takes {:.2f} ms (median of steps {} to {}), predicted for {}: {:.2f} ms (ratio {:.2f}); "
      "further off is {}, "
      "{:.2f} against {:.2f} ms",
      ms, times.first_number(), times.last_number(), plan.target().name(), predicted, ms / predicted,
      is_communication ? "exposed communication" : "computation", is_communication ? exposed : rest,
      is_communication ? predicted_exposed : predicted_rest);
}

}  // namespace ft
