// The config.json of a plan's model.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "runtime/checkpoint/state/state_layout.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// As ConfigJson writes it, of the type in which `state`, that of the plan, keeps weights; of several,
// float32. Errors: FailedPrecondition where the plan does not say its model's facts; those of FactsOf and
// ConfigJson.
absl::StatusOr<std::string> ConfigOfPlan(const proto::Plan& plan, const StateLayout& state);

}  // namespace ft
