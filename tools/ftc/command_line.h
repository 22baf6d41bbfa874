// The command line of ftc as values.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "compiler/pipeline/phases.h"
#include "models/base/config.h"

namespace ftc {

// ftc model NAME [--preset=P] ... -o model.mlir
struct ModelCommand {
  bool list = false;
  std::string name;
  std::string preset;
  ft::models::Overrides overrides;
  std::string output;  // empty or "-": standard output
};

// ftc compile model.mlir --strategy=S ...; ftc --dump model.mlir --strategy=S
struct CompileCommand {
  std::string model;
  ft::compiler::CompileOptions options;
  std::vector<std::string> dump;  // phases, in the order of the command line
  std::string dump_dir;           // empty: none
  std::string output;             // plan; empty: none is written
};

// ftc explain plan.bin
struct ExplainCommand {
  std::string plan;
  int world_size = 1;
  // Given with --mesh: replica, shard.
  std::optional<std::pair<int, int>> mesh;
  bool json = false;
};

// ftc dump plan.bin
struct DumpCommand {
  std::string plan;
};

// ftc verify plan.bin
struct VerifyCommand {
  std::string plan;
};

using Command = std::variant<ModelCommand, CompileCommand, ExplainCommand, DumpCommand, VerifyCommand>;

// The command, or the exit status of a program that has nothing to do: 0 after --help, 2 after a usage error,
// which has been reported in one line.
std::variant<Command, int> ParseCommandLine(int argc, char** argv);

}  // namespace ftc
