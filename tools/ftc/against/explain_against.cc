#include "tools/ftc/against/explain_against.h"

#include <utility>

#include "fmt/format.h"
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
  if (const std::string hash = ft::PlanHashText(file.hash); trace.run.plan != hash)
    return absl::InvalidArgumentError(fmt::format("'{}' is a trace of plan {}, '{}' is plan {}",
                                                  command.against, trace.run.plan, path, hash));
  Explained explained;
  explained.name = path;
  explained.plan = std::move(file.plan);
  FT_ASSIGN_OR_RETURN(explained.target, TargetOf(command, explained.plan));
  if (trace.run.device != "null" && explained.target.cuda() != (trace.run.device == "cuda"))
    return absl::InvalidArgumentError(
        fmt::format("'{}' is a trace of {}, but {} is not: give a --target that is", command.against,
                    trace.run.device == "cuda" ? "GPUs" : "CPU ranks", explained.target.name()));
  FT_RETURN_IF_ERROR(ExplainAt(command, {.replica = trace.run.replica, .shard = trace.run.shard}, explained));
  FT_ASSIGN_OR_RETURN(const Comparison comparison, Compare(explained, trace));
  return ft::PrintOut(command.json ? AgainstJson(explained, trace, comparison)
                                   : AgainstText(explained, trace, comparison));
}

}  // namespace ftc
