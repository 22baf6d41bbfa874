#include "tools/ftexec/steady_steps.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "fmt/format.h"
#include "runtime/cost/instruction_kind.h"
#include "runtime/cost/simulate.h"
#include "runtime/plan/report.h"

namespace ft {
namespace {

constexpr size_t kKept = 256;

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

struct KindTimes {
  double measured = 0, predicted = 0;  // seconds of a step
  double off() const { return std::abs(measured - predicted); }
};

// "; of all kinds of instructions ..., in step 20": the one whose time is furthest from what was predicted.
std::string FurthestKind(const InstructionTimes& observed, const proto::Plan& plan, const BoundPlan& bound) {
  std::map<std::string, KindTimes> kinds;
  for (int p = 0; p < plan.programs_size(); ++p) {
    const proto::Program& program = plan.programs(p);
    const auto runs = static_cast<double>(RunsInStep(plan, program));
    if (runs == 0) continue;
    const SimulatedProgram simulated = SimulateProgram(plan, bound, p, plan.target());
    for (int i = 0; i < program.instructions_size(); ++i) {
      const double measured = observed.Seconds(p, i);
      if (measured == 0) continue;  // it takes no command, as an exchange of one rank
      const SimulatedInstruction& times = simulated.instructions[static_cast<size_t>(i)];
      KindTimes& kind = kinds[KindOf(program.instructions(i))];
      kind.measured += measured;
      kind.predicted += runs * (times.end - times.begin);
    }
  }
  const auto furthest = std::max_element(kinds.begin(), kinds.end(), [](const auto& a, const auto& b) {
    return a.second.off() < b.second.off();
  });
  if (furthest == kinds.end()) return "";
  return fmt::format("; of all kinds of instructions {}, {:.2f} against {:.2f} ms in step {}",
                     furthest->first, furthest->second.measured * 1e3, furthest->second.predicted * 1e3,
                     observed.step() + 1);
}

}  // namespace

SteadySteps::SteadySteps(int64_t traced_steps) : first_(std::max(kSettling, traced_steps)) {
  step_ms_.reserve(kKept);
  exposed_ms_.reserve(kKept);
}

void SteadySteps::Add(const StepMetrics& metrics) {
  if (steps_++ < first_ || metrics.step == left_out_) return;
  last_number_ = metrics.step + 1;
  if (counted_ == 0) first_number_ = last_number_;
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

bool IsPredicted(const proto::Plan& plan, bool on_gpu) {
  return plan.has_target() && plan.target().cuda() == on_gpu;
}

std::string PredictedLine(const SteadySteps& times, const InstructionTimes* observed, const proto::Plan& plan,
                          const BoundPlan& bound, bool on_gpu) {
  if (times.counted() == 0 || !IsPredicted(plan, on_gpu)) return "";
  const SimulatedProgram step = SimulateStep(plan, bound, plan.target());
  const double ms = times.MedianMs(), exposed = times.MedianExposedMs();
  const double predicted = step.seconds * 1e3, predicted_exposed = step.exposed_seconds * 1e3;
  if (!(predicted > 0)) return "";
  const double rest = ms - exposed, predicted_rest = predicted - predicted_exposed;
  const bool is_communication = std::abs(exposed - predicted_exposed) > std::abs(rest - predicted_rest);
  std::string line = fmt::format(
      "a step takes {:.2f} ms (median of steps {} to {}), predicted for {}: {:.2f} ms (ratio {:.2f}); "
      "further off is {}, {:.2f} against {:.2f} ms",
      ms, times.first_number(), times.last_number(), plan.target().name(), predicted, ms / predicted,
      is_communication ? "exposed communication" : "computation", is_communication ? exposed : rest,
      is_communication ? predicted_exposed : predicted_rest);
  if (observed != nullptr && observed->measured()) line += FurthestKind(*observed, plan, bound);
  return line;
}

}  // namespace ft
