// ftrun: starts the ranks of a run on this node, with torchrun's environment and no Python.
#include "tools/ftrun/launcher.h"
#include "tools/ftrun/options.h"

int main(int argc, char** argv) {
  const ft::run::ParsedOptions parsed = ft::run::ParseOptions(argc, argv);
  return parsed.run ? ft::run::Launch(parsed.options) : parsed.exit_status;
}
