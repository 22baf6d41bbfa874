// The compiler: from a model to a plan, and what a plan says.
#include <variant>

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

int main(int argc, char** argv) {
  ft::HoldStandardDescriptors();
  ft::LimitedFilesAreErrors();
  const auto parsed = ftc::ParseCommandLine(argc, argv);
  if (const int* status = std::get_if<int>(&parsed)) return *status;
  return std::visit([](const auto& command) { return ftc::Run(command); }, std::get<ftc::Command>(parsed));
}
