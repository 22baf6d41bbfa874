// ftc explain plan.bin --against=trace.json
#pragma once

#include "absl/status/status.h"
#include "tools/ftc/command_line.h"

namespace ftc {

// Prints it. Errors: those of reading plan and trace; InvalidArgument where they do not belong together.
absl::Status ExplainAgainst(const ExplainCommand& command);

}  // namespace ftc
