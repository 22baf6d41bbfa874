#include "fmt/format.h"
#include "runtime/base/exit_status.h"
#include "runtime/base/standard_streams.h"
#include "runtime/base/status_macros.h"
#include "runtime/collective/create.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/verify_plan.h"
#include "tools/ftc/commands.h"

namespace ftc {
namespace {

// What must hold for a plan to be spoken about at all, with the file's name in errors.
absl::StatusOr<ft::PlanFile> ReadVerified(const std::string& path) {
  FT_ASSIGN_OR_RETURN(ft::PlanFile file, ft::ReadPlan(path));
  const absl::Status status = ft::VerifyPlan(file.plan);
  if (!status.ok())
    return absl::Status(status.code(), fmt::format("{}: {}", path, std::string(status.message())));
  return file;
}

absl::Status Explain(const ExplainCommand& command) {
  FT_ASSIGN_OR_RETURN(const ft::PlanFile file, ReadVerified(command.plan));
  FT_ASSIGN_OR_RETURN(ft::Mesh mesh, ft::MeshFor(file.plan, command.world_size));
  if (command.mesh) mesh = {.replica = command.mesh->first, .shard = command.mesh->second};
  FT_ASSIGN_OR_RETURN(const ft::BoundPlan bound, ft::BindPlan(file.plan, mesh));
  const ft::PlanReport report = ft::ReportPlan(file.plan, bound);
  const auto staging = [&](ft::CollectiveBackend backend) {
    return ft::StagingBytes(backend, mesh.world_size(), ft::kCommunicatorsOfRun);
  };
  const CommunicatorBytes communicators = {.shm = staging(ft::CollectiveBackend::kShm),
                                           .gloo = staging(ft::CollectiveBackend::kGloo)};
  return ft::PrintOut(command.json ? ExplainJson(file.plan, bound, report, communicators)
                                   : ExplainText(file.plan, bound, report, communicators));
  return absl::OkStatus();
}

absl::Status Verify(const VerifyCommand& command) {
  FT_ASSIGN_OR_RETURN(const ft::PlanFile file, ReadVerified(command.plan));
  size_t instructions = 0;
  for (const auto& program : file.plan.programs()) instructions += program.instructions_size();
  return ft::PrintOut(fmt::format("{}: valid, hash {}: {} programs, {} instructions, {} buffers\n",
                                  command.plan, ft::PlanHashText(file.hash), file.plan.programs_size(),
                                  instructions, file.plan.buffers_size()));
}

// Not verified: a plan that is wrong is what one wants to look at.
absl::Status Dump(const DumpCommand& command) {
  FT_ASSIGN_OR_RETURN(const ft::PlanFile file, ft::ReadPlan(command.plan));
  return ft::PrintOut(PlanText(file.plan, file.hash));
}

}  // namespace

int Run(const ExplainCommand& command) { return StatusOf(Explain(command)); }
int Run(const VerifyCommand& command) { return StatusOf(Verify(command)); }
int Run(const DumpCommand& command) { return StatusOf(Dump(command)); }

}  // namespace ftc
