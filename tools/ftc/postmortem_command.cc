#include <string>
#include <vector>

#include "fmt/format.h"
#include "runtime/base/standard_streams.h"
#include "runtime/base/status_macros.h"
#include "runtime/plan/plan_file.h"
#include "runtime/postmortem/postmortem_text.h"
#include "runtime/postmortem/read_reports.h"
#include "tools/ftc/commands.h"

namespace ftc {
namespace {

absl::Status Postmortem(const PostmortemCommand& command) {
  std::string plan_hash;
  if (!command.plan.empty()) {
    FT_ASSIGN_OR_RETURN(const ft::PlanFile plan, ft::ReadPlan(command.plan));
    plan_hash = ft::PlanHashText(plan.hash);
  }
  FT_ASSIGN_OR_RETURN(ft::ReportFolder folder, ft::ReadReports(command.folder));
  std::vector<std::string> remarks = std::move(folder.remarks);
  const std::vector<ft::Attempt> attempts = ft::SortIntoAttempts(std::move(folder.reports), remarks);
  const ft::Attempt* attempt = ft::ChooseAttempt(attempts, command.attempt);
  if (attempt != nullptr) return ft::PrintOut(ft::PostmortemText(*attempt, attempts, remarks, plan_hash));
  for (const std::string& remark : remarks) ft::PrintError("ftc: " + remark);
  if (!attempts.empty())
    return absl::InvalidArgumentError(
        fmt::format("'{}' has no reports of attempt {}; the newest is attempt {}", command.folder,
                    command.attempt.value_or(0), attempts.front().attempt));
  return absl::InvalidArgumentError(
      fmt::format("'{}' has no reports (*{}): ranks that are ended leave them in the folder of ftexec's "
                  "--log-dir, and a run that ends well leaves none",
                  command.folder, ft::kRankReportSuffix));
}

}  // namespace

int Run(const PostmortemCommand& command) { return StatusOf(Postmortem(command)); }

}  // namespace ftc
