#include "tools/ftc/against/explain_against.h"

#include <utility>

#include "runtime/base/standard_streams.h"
#include "runtime/base/status_macros.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/verify_plan.h"
#include "tools/ftc/against/comparison.h"
#include "tools/ftc/explain_plans.h"

namespace ftc {

absl::Status ExplainAgainst(const ExplainCommand& command) {
  const std::string& path = command.plans.front();
  FT_ASSIGN_OR_RETURN(ft::PlanFile file, ft::ReadPlan(path));
  FT_RETURN_IF_ERROR(ft::VerifyPlan(file.plan));
  FT_ASSIGN_OR_RETURN(const MeasuredTrace trace, ReadTrace(command.against));
  Explained explained;
  explained.name = path;
  explained.plan = std::move(file.plan);
  FT_ASSIGN_OR_RETURN(explained.target, TargetOf(command, explained.plan));
  FT_RETURN_IF_ERROR(CheckTrace(command.against, trace.run, explained, file.hash));
  const ft::Mesh mesh{.replica = trace.run.replica, .shard = trace.run.shard};
  FT_RETURN_IF_ERROR(ExplainAt(command, mesh, explained));
  FT_ASSIGN_OR_RETURN(const Comparison comparison, Compare(command.against, explained, trace));
  return ft::PrintOut(command.json ? AgainstJson(explained, trace, comparison)
                                   : AgainstText(explained, trace, comparison));
}

}  // namespace ftc
