// ftrun: starts the ranks of a run on this node, with torchrun's environment and no Python.
#include <exception>
#include <string>

#include "absl/time/time.h"
#include "runtime/base/exit_status.h"
#include "runtime/base/standard_streams.h"
#include "tools/ftrun/launcher.h"
#include "tools/ftrun/options.h"

int main(int argc, char** argv) {
  ft::LimitedFilesAreErrors();
  const ft::run::ParsedOptions parsed = ft::run::ParseOptions(argc, argv);
  if (!parsed.run) return parsed.exit_status;
  try {
    return ft::run::Launch(parsed.options, {.term_grace = absl::Seconds(parsed.options.grace_seconds)});
  } catch (const std::exception& error) {  // no memory, for instance
    ft::PrintError(std::string("ftrun: ") + error.what());
    return ft::kExitIo;
  }
}
