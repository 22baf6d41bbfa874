// The compiler: from a model to a plan, and what a plan says.
#include <variant>

#include "fmt/format.h"
#include "runtime/base/exit_status.h"
#include "tools/ftc/command_line.h"
#include "tools/ftc/commands.h"

namespace ftc {

int Fail(const absl::Status& status) {
  fmt::print(stderr, "ftc: {}\n", std::string(status.message()));
  return ft::ExitStatus(status);
}

int FailUsage(const std::string& message) {
  fmt::print(stderr, "ftc: {}\n", message);
  return ft::kExitUsage;
}

}  // namespace ftc

int main(int argc, char** argv) {
  const auto parsed = ftc::ParseCommandLine(argc, argv);
  if (const int* status = std::get_if<int>(&parsed)) return *status;
  return std::visit([](const auto& command) { return ftc::Run(command); }, std::get<ftc::Command>(parsed));
}
