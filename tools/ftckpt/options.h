// The command line of ftckpt.
#pragma once

#include <functional>

#include "absl/status/statusor.h"

namespace CLI {
class App;
}

namespace ft::ckpt {

struct ParsedLine {
  std::function<absl::StatusOr<int>()> command;  // empty: the program ends with `exit_status`
  int exit_status = 0;
};

// Calls `describe` with the command line.
void DescribeLine(const std::function<void(const CLI::App&)>& describe);

// Prints what was asked for (--help), or in one line what is wrong.
ParsedLine ParseLine(int argc, const char* const* argv);

}  // namespace ft::ckpt
