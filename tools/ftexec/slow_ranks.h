// What a training run makes of the times that its ranks take for a step.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "runtime/collective/liveness/step_times.h"
#include "runtime/metrics/step_metrics.h"

namespace ft {

// Tells rank 0 how long this rank computed in a step. On rank 0, returns what is known of all ranks, and says
// by `warn` of a rank that has become slow, once. Allocates nothing but for that.
std::optional<ComputeSpread> ReportStepTime(StepTimes& times, int64_t step, double compute_ms,
                                            absl::FunctionRef<void(const std::string& line)> warn);

}  // namespace ft
