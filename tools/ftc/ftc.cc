// The compiler: from a model to a plan, and what a plan says.
#include <unistd.h>

#include <new>
#include <string_view>
#include <variant>

#include "llvm/Support/ErrorHandling.h"
#include "runtime/base/exit_status.h"
#include "runtime/base/standard_streams.h"
#include "tools/ftc/command_line.h"
#include "tools/ftc/commands.h"

namespace ftc {

int Fail(const absl::Status& status) {
  ft::PrintError("ftc: " + std::string(status.message()));
  return ft::ExitStatus(status);
}

int StatusOf(const absl::Status& status) { return status.ok() ? ft::kExitOk : Fail(status); }

int FailUsage(const std::string& message) {
  ft::PrintError("ftc: " + message);
  return ft::kExitUsage;
}

}  // namespace ftc

namespace {

// Models are compiled by threads, MLIR's without exceptions: nothing else could say it in one line.
[[noreturn]] void EndWithoutMemory() {
  constexpr std::string_view kLine =
      "ftc: out of memory; allow more (ulimit -v, or the container's limit), or compile for a smaller "
      "batch\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kLine.data(), kLine.size());
  _exit(ft::kExitIo);
}

}  // namespace

int main(int argc, char** argv) {
  std::set_new_handler(EndWithoutMemory);
  llvm::install_bad_alloc_error_handler([](void*, const char*, bool) { EndWithoutMemory(); });
  ft::HoldStandardDescriptors();
  ft::LimitedFilesAreErrors();
  const auto parsed = ftc::ParseCommandLine(argc, argv);
  if (const int* status = std::get_if<int>(&parsed)) return *status;
  return std::visit([](const auto& command) { return ftc::Run(command); }, std::get<ftc::Command>(parsed));
}
