#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "compiler/pipeline/compile.h"
#include "fmt/format.h"
#include "runtime/base/exit_status.h"
#include "runtime/base/standard_streams.h"
#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/state/plan_state.h"
#include "runtime/collective/plan_communicators.h"
#include "runtime/plan/inputs.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/verify_plan.h"
#include "tools/ftc/against/explain_against.h"
#include "tools/ftc/commands.h"
#include "tools/ftc/config/configure.h"
#include "tools/ftc/config/settings.h"
#include "tools/ftc/explain.h"
#include "tools/ftc/explain_plans.h"
#include "tools/ftc/tune/tuning.h"

namespace ftc {
namespace {

constexpr char kUsualTarget[] = "cpu";

// A model and how to compile it, under the name that its column has.
struct Variant {
  std::string name;
  std::vector<Given> flags;
};

absl::StatusOr<std::vector<Variant>> VariantsOf(const ExplainCommand& command) {
  std::vector<Given> flags = command.settings.flags;
  if (command.world_size > 0)
    FT_RETURN_IF_ERROR(SetFlag("world_size", fmt::format("{}", command.world_size), flags));
  if (command.mesh)
    FT_RETURN_IF_ERROR(SetFlag("mesh", ft::MeshText({command.mesh->first, command.mesh->second}), flags));
  if (!command.target.empty()) FT_RETURN_IF_ERROR(SetFlag("target", command.target, flags));
  if (!command.compare) return std::vector<Variant>{{command.model, flags}};
  std::vector<Variant> variants;
  for (const std::string& strategy : command.strategies) {
    FT_RETURN_IF_ERROR(SetFlag("strategy", strategy, flags));
    variants.push_back({strategy, flags});
  }
  return variants;
}

absl::StatusOr<ft::proto::Plan> Compile(const ExplainCommand& command, const Configuration& configuration) {
  const auto ignore = [](const ft::compiler::Stage&, int, mlir::ModuleOp) { return absl::OkStatus(); };
  return ft::compiler::compileModel(command.model, CompileOptionsOf(configuration), ignore);
}

Explained Named(std::string name, ft::proto::Plan plan) {
  Explained explained;
  explained.name = std::move(name);
  explained.plan = std::move(plan);
  return explained;
}

// The plans to explain: files, or what a model is compiled to; or the refusal of a setting.
absl::StatusOr<std::variant<std::vector<Explained>, Refusal>> Gather(const ExplainCommand& command) {
  std::vector<Explained> plans;
  for (const std::string& path : command.plans) {
    FT_ASSIGN_OR_RETURN(ft::PlanFile file, ft::ReadPlan(path));
    plans.push_back(Named(path, std::move(file.plan)));
  }
  if (command.model.empty()) return plans;
  FT_ASSIGN_OR_RETURN(const std::vector<Variant> variants, VariantsOf(command));
  for (const Variant& variant : variants) {
    FT_ASSIGN_OR_RETURN(const auto configured,
                        ConfigureFor(command.model, command.settings.config, variant.flags));
    if (const auto* refusal = std::get_if<Refusal>(&configured)) return *refusal;
    FT_ASSIGN_OR_RETURN(ft::proto::Plan plan,
                        Compile(command, std::get<Effective>(configured).configuration));
    plans.push_back(Named(variant.name, std::move(plan)));
  }
  return plans;
}

// A mesh that is given goes for the plans that can run on it; a plan with one axis has as many ranks on it.
absl::StatusOr<ft::Mesh> ChooseMesh(const ExplainCommand& command, const ft::proto::Plan& plan,
                                    int ranks_per_node) {
  if (!command.mesh) return ft::CompiledMesh(plan, ranks_per_node, command.world_size);
  const ft::Mesh mesh{.replica = command.mesh->first, .shard = command.mesh->second};
  if (!command.compare || ft::CheckMesh(plan, mesh).ok()) return mesh;
  return ft::CompiledMesh(plan, ranks_per_node, mesh.world_size());
}

// Returns why a plan cannot run on the ranks in question; empty when it can, and is reported.
absl::StatusOr<std::string> Report(const ExplainCommand& command, Explained& explained) {
  FT_RETURN_IF_ERROR(ft::VerifyPlan(explained.plan));
  FT_ASSIGN_OR_RETURN(explained.target, TargetOf(command, explained.plan));
  const auto ranks_per_node = static_cast<int>(explained.target.ranks_per_node());
  const absl::StatusOr<ft::Mesh> mesh = ChooseMesh(command, explained.plan, ranks_per_node);
  if (!mesh.ok()) return std::string(mesh.status().message());
  FT_RETURN_IF_ERROR(ExplainAt(command, *mesh, explained));
  return std::string();
}

// Those that can run on the ranks in question.
absl::StatusOr<ExplainedPlans> ReportAll(const ExplainCommand& command, std::vector<Explained> gathered) {
  ExplainedPlans explained;
  for (Explained& one : gathered) {
    const absl::StatusOr<std::string> why = Report(command, one);
    if (!why.ok())
      return absl::Status(why.status().code(),
                          fmt::format("{}: {}", one.name, std::string(why.status().message())));
    if (why->empty()) {
      explained.plans.push_back(std::move(one));
    } else {
      explained.left_out.push_back({one.name, *why});
    }
  }
  // A comparison goes on without some, not without all.
  if (explained.plans.empty())
    return absl::InvalidArgumentError(
        fmt::format("{}: {}", explained.left_out[0].name, explained.left_out[0].why));
  return explained;
}

absl::Status Print(const ExplainCommand& command, const ExplainedPlans& explained) {
  const std::vector<Explained>& plans = explained.plans;
  if (command.schedule) return ft::PrintOut(command.json ? ScheduleJson(plans[0]) : ScheduleText(plans[0]));
  const int peak = command.peak.value_or(command.json ? ExplainCommand::kUsualPeak : 0);
  if (command.compare)
    return ft::PrintOut(command.json ? CompareJson(plans, explained.left_out, peak)
                                     : CompareText(plans, explained.left_out));
  return ft::PrintOut(command.json ? ExplainJson(plans[0], peak) : ExplainText(plans[0], peak));
}

// An error in a model or a configuration begins with its own place, as editors expect it.
int FailAt(const ExplainCommand& command, const absl::Status& status) {
  if (!absl::StrContains(status.message(), ": error: ") &&
      (command.settings.config.empty() || !absl::StartsWith(status.message(), command.settings.config + ":")))
    return Fail(status);
  ft::PrintError(std::string(status.message()));
  return ft::ExitStatus(status);
}

}  // namespace

absl::StatusOr<ft::Target> TargetOf(const ExplainCommand& command, const ft::proto::Plan& plan) {
  if (!command.target.empty()) return TargetNamed(command.target);
  return plan.has_target() ? plan.target() : TargetNamed(kUsualTarget);
}

static absl::Status AddSpan(uint64_t tokens, Explained& explained) {
  const ft::proto::Plan& plan = explained.plan;
  if (ft::EvaluatesOnly(plan) || plan.vocab_size() == 0)
    return absl::InvalidArgumentError(ft::EvaluatesOnly(plan)
                                          ? "the plan trains nothing, --tokens is of training"
                                          : "the plan takes examples, not tokens");
  const uint64_t bytes = explained.snapshot.has_value() ? explained.snapshot->bytes : 0;
  explained.span = SpanOf(plan, explained.bound, explained.target, explained.step, bytes, tokens);
  return absl::OkStatus();
}

absl::Status ExplainAt(const ExplainCommand& command, const ft::Mesh& mesh, Explained& explained) {
  const ft::DeviceClass device = command.device.value_or(ft::DeviceOf(explained.target));
  FT_ASSIGN_OR_RETURN(explained.bound, ft::BindPlan(explained.plan, mesh, device));
  explained.report = ft::ReportPlan(explained.plan, explained.bound);
  explained.saved = ft::ReportSaved(explained.plan, explained.target);
  explained.step = ft::SimulateStep(explained.plan, explained.bound, explained.target);
  explained.cost = StepCostOf(explained.plan, explained.bound, explained.step, explained.target);
  const auto staging = [&](ft::CollectiveBackend backend) {
    return ft::StagingBytes(explained.plan, mesh, backend);
  };
  explained.communicators = {.shm = staging(ft::CollectiveBackend::kShm),
                             .gloo = staging(ft::CollectiveBackend::kGloo)};
  const auto state = ft::StateOfPlan(explained.plan, mesh);
  if (state.ok() && !ft::EvaluatesOnly(explained.plan))
    explained.snapshot = {.bytes = ft::LargestShare(*state),
                          .local = ft::LargestShare(*state, ft::LocallySavedBytes)};
  return command.tokens == 0 ? absl::OkStatus() : AddSpan(command.tokens, explained);
}

std::variant<ExplainedPlans, int> ExplainPlans(const ExplainCommand& command) {
  auto gathered = Gather(command);
  if (!gathered.ok()) return FailAt(command, gathered.status());
  if (const auto* refusal = std::get_if<Refusal>(&*gathered))
    return refusal->usage ? FailUsage(refusal->message) : Fail(absl::InvalidArgumentError(refusal->message));
  absl::StatusOr<ExplainedPlans> explained =
      ReportAll(command, std::get<std::vector<Explained>>(*std::move(gathered)));
  if (!explained.ok()) return Fail(explained.status());
  return *std::move(explained);
}

int Run(const ExplainCommand& command) {
  if (!command.against.empty()) return StatusOf(ExplainAgainst(command));
  const std::variant<ExplainedPlans, int> explained = ExplainPlans(command);
  if (const int* status = std::get_if<int>(&explained)) return *status;
  return StatusOf(Print(command, std::get<ExplainedPlans>(explained)));
}

}  // namespace ftc
