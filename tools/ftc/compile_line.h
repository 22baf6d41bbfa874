// The command line of ftc compile: a flag for each row of the table of settings, and what to print and write.
#pragma once

#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "tools/ftc/command_line.h"

namespace ftc {

// Must live as long as the CLI::App that it adds to: CLI11 writes into it.
class CompileLine {
 public:
  // Adds the subcommand.
  void AddTo(CLI::App& app);

  // Adds --config and a flag for each setting to another subcommand, except where that has a flag of the same
  // name.
  void AddSettingsTo(CLI::App& sub);

  // Of what was parsed; fills `command`. What is wrong in words, empty when nothing is.
  std::string Read(const CLI::App& sub, CompileCommand& command) const;
  std::string ReadSettings(CompileCommand& command) const;

 private:
  std::string ReadDump(const CLI::App& sub, CompileCommand& command) const;

  CompileCommand command_;
  std::string dump_;
  std::vector<std::string> settings_;  // by index in Settings()
  std::vector<CLI::Option*> options_;  // parallel; null where the subcommand had one of its own
};

}  // namespace ftc
