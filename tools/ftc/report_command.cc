// ftc report: what a plan costs, and what a run of it took, as one page that works offline.
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fmt/format.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/output_check.h"
#include "runtime/base/standard_streams.h"
#include "runtime/base/status_macros.h"
#include "tools/ftc/commands.h"
#include "tools/ftc/config/target_file.h"
#include "tools/ftc/explain_plans.h"
#include "tools/ftc/output_and_inputs.h"
#include "tools/ftc/report/document.h"
#include "tools/ftc/report/page.h"

namespace ftc {
namespace {

// `explained` as it is would be for `ranks`, or why it cannot be.
absl::StatusOr<ScalingRow> RowAt(const ReportCommand& command, int ranks, Explained explained) {
  const auto ranks_per_node = static_cast<int>(explained.target.ranks_per_node());
  FT_ASSIGN_OR_RETURN(const ft::Mesh mesh, ft::CompiledMesh(explained.plan, ranks_per_node, ranks));
  FT_RETURN_IF_ERROR(ExplainAt(command.subject, mesh, explained));
  return RowOf(explained);
}

Scaling ScalingOf(const ReportCommand& command, const Explained& explained) {
  const int own = explained.bound.mesh.world_size();
  const std::vector<int>& named = command.world_sizes;
  const std::vector<int> sizes = named.empty() ? UsualWorldSizes(own) : named;
  std::set<int> ascending(sizes.begin(), sizes.end());
  ascending.insert(own);
  Scaling scaling;
  for (const int ranks : ascending) {
    if (ranks == own) {
      scaling.rows.push_back(RowOf(explained));
      continue;
    }
    absl::StatusOr<ScalingRow> row = RowAt(command, ranks, explained);
    if (row.ok()) {
      scaling.rows.push_back(*std::move(row));
    } else {
      scaling.left_out.push_back({absl::StrCat(ranks), std::string(row.status().message())});
    }
  }
  return scaling;
}

absl::Status Report(const ReportCommand& command, ReportInput input) {
  const std::vector<Explained>& plans = input.explained.plans;
  if (!command.run.empty()) {
    FT_ASSIGN_OR_RETURN(input.run, ReadRunMetrics(command.run, plans[0]));
  }
  if (!command.trace.empty()) {
    FT_ASSIGN_OR_RETURN(input.trace, ReadRunTrace(command.trace, plans[0]));
  }
  for (const Explained& plan : plans) input.scaling.push_back(ScalingOf(command, plan));
  const std::string page = absl::StrCat(kPageBeforeDocument, ReportDocument(input), kPageAfterDocument);
  if (command.output == "-") return ft::PrintOut(page);
  return ft::WriteFileAtomically(command.output, page);
}

std::vector<std::string> InputsOf(const ReportCommand& command) {
  const ExplainCommand& subject = command.subject;
  std::vector<std::string> inputs = {subject.model, subject.settings.config, command.run, command.trace};
  if (IsTargetFile(subject.target)) inputs.push_back(subject.target);
  inputs.insert(inputs.end(), subject.plans.begin(), subject.plans.end());
  return inputs;
}

}  // namespace

int Run(const ReportCommand& command) {
  if (command.output != "-")
    if (const std::string mistake = OverwrittenInput(command.output, InputsOf(command)); !mistake.empty())
      return FailUsage(mistake);
  const absl::Status writable =  // a model is compiled first, which may take long
      command.output == "-" ? absl::OkStatus() : ft::CheckAtomicOutput(command.output, 0);
  if (!writable.ok()) return Fail(writable);
  std::variant<ExplainedPlans, int> explained = ExplainPlans(command.subject);
  if (const int* status = std::get_if<int>(&explained)) return *status;
  ReportInput input;
  input.explained = std::get<ExplainedPlans>(std::move(explained));
  return StatusOf(Report(command, std::move(input)));
}

}  // namespace ftc
