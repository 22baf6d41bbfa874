// The plans that a command line names, explained for its ranks and machine.
#pragma once

#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/plan/mesh.h"
#include "tools/ftc/command_line.h"
#include "tools/ftc/explain.h"

namespace ftc {

struct ExplainedPlans {
  std::vector<Explained> plans;   // one at least
  std::vector<LeftOut> left_out;  // of a comparison
};

// Or the exit status, after the error has been reported in one line.
std::variant<ExplainedPlans, int> ExplainPlans(const ExplainCommand& command);

// The machine that is named, or the plan's own.
absl::StatusOr<ft::Target> TargetOf(const ExplainCommand& command, const ft::proto::Plan& plan);

// Everything about `explained` that depends on the ranks, for these. Errors: those of BindPlan.
absl::Status ExplainAt(const ExplainCommand& command, const ft::Mesh& mesh, Explained& explained);

}  // namespace ftc
