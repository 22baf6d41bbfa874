// The command line of ftc tune.
#pragma once

#include <string>

#include "CLI/CLI.hpp"
#include "tools/ftc/command_line.h"
#include "tools/ftc/compile_line.h"

namespace ftc {

// Must live as long as the CLI::App that it adds to: CLI11 writes into it.
class TuneLine {
 public:
  void AddTo(CLI::App& app);

  // Of what was parsed. Throws Mistake.
  TuneCommand Read() const;

 private:
  TuneCommand command_;
  std::string model_, output_, world_sizes_, memory_, host_memory_;
  CompileLine settings_;
};

}  // namespace ftc
