#include <algorithm>
#include <filesystem>

#include "absl/strings/match.h"
#include "compiler/pipeline/compile.h"
#include "fmt/format.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/exit_status.h"
#include "runtime/base/posix_error.h"
#include "runtime/base/standard_streams.h"
#include "runtime/base/status_macros.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/verify_plan.h"
#include "tools/ftc/commands.h"

namespace ftc {
namespace {

std::string TextOf(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream);
  stream << "\n";
  return text;
}

absl::Status MakeFolder(const std::string& path) {
  std::error_code code;
  std::filesystem::create_directories(path, code);
  return code ? ft::PosixError(code.value(), "create folder", path) : absl::OkStatus();
}

absl::Status Observe(const CompileCommand& command, const ft::compiler::Phase& phase, int number,
                     mlir::ModuleOp module) {
  const std::string name = phase.name.str();
  const bool print = std::find(command.dump.begin(), command.dump.end(), name) != command.dump.end();
  if (!print && command.dump_dir.empty()) return absl::OkStatus();
  const std::string text = TextOf(module);
  if (print) {
    const std::string title = command.dump.size() > 1 ? "// after phase " + name + "\n" : "";
    FT_RETURN_IF_ERROR(ft::PrintOut(title + text));
  }
  if (command.dump_dir.empty()) return absl::OkStatus();
  return ft::WriteFileAtomically(fmt::format("{}/{:02}-{}.mlir", command.dump_dir, number, name), text);
}

absl::Status Compile(const CompileCommand& command) {
  if (!command.dump_dir.empty()) FT_RETURN_IF_ERROR(MakeFolder(command.dump_dir));
  const auto observe = [&](const ft::compiler::Phase& phase, int number, mlir::ModuleOp module) {
    return Observe(command, phase, number, module);
  };
  FT_ASSIGN_OR_RETURN(const ft::proto::Plan plan,
                      ft::compiler::compileModel(command.model, command.options, observe));
  FT_RETURN_IF_ERROR(ft::VerifyPlan(plan));
  return command.output.empty() ? absl::OkStatus() : ft::WritePlan(plan, command.output);
}

}  // namespace

int Run(const CompileCommand& command) {
  const absl::Status status = Compile(command);
  if (status.ok()) return ft::kExitOk;
  // An error in the model begins with its own place, as editors expect it.
  if (!absl::StrContains(status.message(), ": error: ")) return Fail(status);
  ft::PrintError(ft::OneLine(status.message()));
  return ft::ExitStatus(status);
}

}  // namespace ftc
