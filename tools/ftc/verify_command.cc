#include "absl/strings/ascii.h"
#include "compiler/codegen/plan_code.h"
#include "fmt/format.h"
#include "runtime/base/exit_status.h"
#include "runtime/base/standard_streams.h"
#include "runtime/base/status_macros.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/verify_plan.h"
#include "runtime/plan/verify_worlds.h"
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

// "gather over shard (13), reduce over world (2)"
std::string CommunicatorsText(const ft::proto::Plan& plan) {
  std::string text;
  for (const ft::CommunicatorUse& use : ft::Communicators(plan)) {
    text += fmt::format("{}{} over {} ({})", text.empty() ? "" : ", ",
                        absl::AsciiStrToLower(ft::proto::Stream_Name(use.stream)),
                        absl::AsciiStrToLower(ft::proto::Axis_Name(use.axis)).substr(5), use.collectives);
  }
  return text.empty() ? "none" : text;
}

// Made again and compared, where the plan is of this compiler; the proofs above say nothing of what it does.
absl::StatusOr<std::string> CodeText(const ft::proto::Plan& plan) {
  int codes = 0;
  for (const ft::proto::Cluster& cluster : plan.clusters()) codes += cluster.codes_size();
  if (codes == 0) return "none";
  if (plan.producer() != ft::compiler::producer())
    return fmt::format("not compared: {} made it, this is {}", plan.producer(), ft::compiler::producer());
  FT_RETURN_IF_ERROR(ft::compiler::compareCode(plan));
  return fmt::format("{} pieces for {} clusters, the same when made again", codes, plan.clusters_size());
}

absl::Status Verify(const VerifyCommand& command) {
  FT_ASSIGN_OR_RETURN(const ft::PlanFile file, ReadVerified(command.plan));
  std::vector<ft::Mesh> meshes = ft::SampleMeshes(file.plan);
  ft::AddOwnMesh(file.plan, meshes);
  FT_RETURN_IF_ERROR(ft::VerifyWorlds(file.plan, meshes));
  FT_ASSIGN_OR_RETURN(const std::string code, CodeText(file.plan));
  size_t instructions = 0;
  for (const auto& program : file.plan.programs()) instructions += program.instructions_size();
  return ft::PrintOut(fmt::format(
      "{}: valid, hash {}: {} programs, {} instructions, {} buffers\n"
      "  order: written before read, waited for, nothing touched that another stream may use\n"
      "  communicators, with their collectives in one order on all ranks, none in a cycle of waits: {}\n"
      "  addresses: disjoint on {} meshes from {} to {}, on cpu and cuda\n"
      "  code: {}\n",
      command.plan, ft::PlanHashText(file.hash), file.plan.programs_size(), instructions,
      file.plan.buffers_size(), CommunicatorsText(file.plan), meshes.size(), ft::MeshText(meshes.front()),
      ft::MeshText(meshes.back()), code));
}

}  // namespace

int Run(const VerifyCommand& command) { return StatusOf(Verify(command)); }

}  // namespace ftc
