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
namespace {

// Seconds of the host for a launch and the record of its event: what each instruction of a traced step of a
// GPU takes at least, which replays no recorded graph. A guess: a launch alone is known to take some
// microseconds.
constexpr double kEnqueuedLaunch = 5e-6;

// The step of the target as it is, and where graphs are recorded but traced steps are not, as those are.
absl::Status ExplainTraced(const ExplainCommand& command, const ft::TraceRun& run, Explained& explained,
                           double& untraced_seconds) {
  const ft::Mesh mesh{.replica = run.replica, .shard = run.shard};
  FT_RETURN_IF_ERROR(ExplainAt(command, mesh, explained));
  untraced_seconds = explained.step.seconds;
  if (run.device != "cuda" || explained.target.stack().launch_s() > 0) return absl::OkStatus();
  explained.target.mutable_stack()->set_launch_s(kEnqueuedLaunch);
  return ExplainAt(command, mesh, explained);
}

}  // namespace

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
  double untraced_seconds = 0;
  FT_RETURN_IF_ERROR(ExplainTraced(command, trace.run, explained, untraced_seconds));
  FT_ASSIGN_OR_RETURN(Comparison comparison, Compare(explained, trace));
  comparison.untraced.predicted = untraced_seconds;
  comparison.enqueued = explained.step.seconds != untraced_seconds;
  return ft::PrintOut(command.json ? AgainstJson(explained, trace, comparison)
                                   : AgainstText(explained, trace, comparison));
}

}  // namespace ftc
