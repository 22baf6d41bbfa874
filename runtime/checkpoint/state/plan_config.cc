#include "runtime/checkpoint/state/plan_config.h"

#include <optional>

#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/config_writer.h"
#include "runtime/plan/plan_facts.h"

namespace ft {
namespace {

DType DTypeOfWeights(const StateLayout& state) {
  std::optional<DType> dtype;
  for (const StateBuffer& buffer : state.buffers) {
    if (buffer.role != kWeightsRole) continue;
    if (dtype.has_value() && *dtype != buffer.dtype) return DType::kF32;
    dtype = buffer.dtype;
  }
  return dtype.value_or(DType::kF32);
}

}  // namespace

absl::StatusOr<std::string> ConfigOfPlan(const proto::Plan& plan, const StateLayout& state) {
  FT_ASSIGN_OR_RETURN(const std::optional<ModelFacts> facts, FactsOf(plan));
  if (!facts.has_value())
    return absl::FailedPreconditionError("the plan does not say the facts of its model (ft.facts)");
  return ConfigJson(*facts, DTypeOfWeights(state));
}

}  // namespace ft
