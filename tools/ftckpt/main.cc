// ftckpt: looks at checkpoints, verifies, compares and converts them.
#include <exception>
#include <string>

#include "runtime/base/exit_status.h"
#include "runtime/base/standard_streams.h"
#include "tools/ftckpt/options.h"

int main(int argc, char** argv) {
  ft::HoldStandardDescriptors();
  ft::LimitedFilesAreErrors();
  try {
    const ft::ckpt::ParsedLine parsed = ft::ckpt::ParseLine(argc, argv);
    if (!parsed.command) return parsed.exit_status;
    const absl::StatusOr<int> status = parsed.command();
    if (status.ok()) return *status;
    ft::PrintError("ftckpt: " + std::string(status.status().message()));
    return ft::ExitStatus(status.status());
  } catch (const std::exception& error) {  // no memory, for instance
    ft::PrintError(std::string("ftckpt: ") + error.what());
    return ft::kExitIo;
  }
}
