// Everything that train.yaml and the flags of ftc compile decide.
#pragma once

#include <string>

#include "compiler/pipeline/options.h"
#include "runtime/base/run_settings.h"

namespace ftc {

using ft::RunSettings;  // overridden by ftexec's flags

// In the place of a strategy: one is chosen, and what else is not given.
inline constexpr char kAutoStrategy[] = "auto";

struct Configuration {
  ft::compiler::CompileOptions options;  // but for runNumbers and runTexts, see CompileOptionsOf
  // A shipped machine or a file of one; what it has stands in options.target once all is read.
  std::string target = "cpu";
  RunSettings run;
};

// The options with the run settings stored in them.
ft::compiler::CompileOptions CompileOptionsOf(const Configuration& configuration);

}  // namespace ftc
