#include <algorithm>
#include <filesystem>
#include <variant>

#include "compiler/pipeline/compile.h"
#include "dialects/ft/signature.h"
#include "fmt/format.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/exit_status.h"
#include "runtime/base/output_check.h"
#include "runtime/base/posix_error.h"
#include "runtime/base/standard_streams.h"
#include "runtime/base/status_macros.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/verify_plan.h"
#include "runtime/plan/verify_worlds.h"
#include "tools/ftc/commands.h"
#include "tools/ftc/config/configure.h"
#include "tools/ftc/dump.h"
#include "tools/ftc/output_and_inputs.h"
#include "tools/ftc/step_cost.h"
#include "tools/ftc/tune/tuning.h"

namespace ftc {
namespace {

absl::Status MakeFolder(const std::string& path) {
  std::error_code code;
  std::filesystem::create_directories(path, code);
  return code ? ft::PosixError(code.value(), "create folder", path) : absl::OkStatus();
}

absl::Status Observe(const CompileCommand& command, const ft::compiler::Stage& stage, int number,
                     mlir::ModuleOp module) {
  const std::string name = stage.name.str();
  for (const DumpRequest& request : command.dump) {
    if (request.stage != name) continue;
    const std::string title = command.dump.size() > 1 ? "// after stage " + name + "\n" : "";
    FT_ASSIGN_OR_RETURN(const std::string text, request.all()
                                                    ? absl::StatusOr<std::string>(ModuleText(module))
                                                    : OpsText(module, request));
    FT_RETURN_IF_ERROR(ft::PrintOut(title + text));
  }
  if (command.dump_dir.empty()) return absl::OkStatus();
  return ft::WriteFileAtomically(fmt::format("{}/{:02}-{}.mlir", command.dump_dir, number, name),
                                 ModuleText(module));
}

absl::Status CheckGlobalBatchOf(mlir::ModuleOp module, const Effective& effective) {
  auto forward = module.lookupSymbol<mlir::func::FuncOp>("forward");
  return CheckGlobalBatch(effective, forward == nullptr ? 0 : mlir::ft::batchOf(forward));
}

absl::Status Compile(const CompileCommand& command, const Effective& effective) {
  if (!command.output.empty())
    FT_RETURN_IF_ERROR(ft::CheckAtomicOutput(command.output, 0));  // compiling may take long
  if (!command.dump_dir.empty()) FT_RETURN_IF_ERROR(MakeFolder(command.dump_dir));
  const auto observe = [&](const ft::compiler::Stage& stage, int number, mlir::ModuleOp module) {
    if (number == 0) FT_RETURN_IF_ERROR(CheckGlobalBatchOf(module, effective));
    return Observe(command, stage, number, module);
  };
  ft::compiler::CompileOptions options = CompileOptionsOf(effective.configuration);
  options.makesCode = !command.output.empty();
  FT_ASSIGN_OR_RETURN(const ft::proto::Plan plan,
                      ft::compiler::compileModel(command.model, options, observe));
  FT_RETURN_IF_ERROR(ft::VerifyPlan(plan));
  FT_RETURN_IF_ERROR(ft::VerifyWorlds(plan, ft::SampleMeshes(plan)));
  if (const std::string remark = MemoryRemark(plan); !remark.empty()) ft::PrintError("ftc: " + remark);
  return command.output.empty() ? absl::OkStatus() : ft::WritePlan(plan, command.output);
}

// An error in a model or a configuration begins with its own place, as editors expect it.
int FailAt(const absl::Status& status) {
  ft::PrintError(std::string(status.message()));
  return ft::ExitStatus(status);
}

// So does one in a file that the configuration names.
int FailConfigure(const absl::Status& status) {
  return absl::IsInvalidArgument(status) ? FailAt(status) : Fail(status);
}

}  // namespace

int Run(const CompileCommand& command) {
  if (const std::string mistake = OverwrittenInput(command.output, {command.model, command.config});
      !mistake.empty())
    return FailUsage(mistake);
  const absl::StatusOr<std::variant<Effective, Refusal>> configured =
      command.print_config ? Configure(command.config, command.flags)
                           : ConfigureFor(command.model, command.config, command.flags);
  if (!configured.ok()) return FailConfigure(configured.status());
  if (const auto* refusal = std::get_if<Refusal>(&*configured)) {
    if (refusal->usage) return FailUsage(refusal->message);
    return Fail(absl::InvalidArgumentError(refusal->message));
  }
  const Effective& effective = std::get<Effective>(*configured);
  for (const auto* lines : {&effective.remarks, &effective.unread})
    for (const std::string& line : *lines) ft::PrintError("ftc: " + line);
  if (command.print_config) return StatusOf(ft::PrintOut(PrintConfig(effective)));
  const absl::Status status = Compile(command, effective);
  if (status.ok()) return ft::kExitOk;
  return HasPlace(status) ? FailAt(status) : Fail(status);
}

}  // namespace ftc
