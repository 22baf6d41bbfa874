// The command line of ftc as values.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "models/base/options.h"
#include "runtime/base/device_class.h"
#include "tools/ftc/config/given.h"
#include "tools/ftc/dump_request.h"

namespace CLI {
class App;
}

namespace ftc {

// ftc model NAME [--preset=P] ... -o model.mlir
struct ModelCommand {
  bool list = false;
  std::string name;
  std::string preset;
  ft::models::Overrides overrides;
  std::string output;  // empty or "-": standard output
};

// ftc import DIR ... -o model.mlir
struct ImportCommand {
  std::string path;  // a folder of transformers, or its config.json
  ft::models::Overrides overrides;
  std::string output;  // empty or "-": standard output
};

// ftc compile model.mlir --strategy=S [--config=train.yaml] ...; ftc --dump model.mlir --strategy=S
struct CompileCommand {
  std::string model;
  std::string config;        // train.yaml; empty: none
  std::vector<Given> flags;  // settings, over those of the file
  bool print_config = false;
  std::vector<DumpRequest> dump;  // in the order of the command line
  std::string dump_dir;           // empty: none
  std::string output;             // plan; empty: none is written
};

// ftc explain plan.bin; ftc explain --compare a.bin b.bin ...; ftc explain model.mlir --strategy=S |
// --compare=S1,S2 ...
struct ExplainCommand {
  std::vector<std::string> plans;
  std::string model;                    // instead of plans: compiled first
  std::vector<std::string> strategies;  // of the model; empty: what the settings say
  CompileCommand settings;              // of the model
  bool compare = false;
  bool schedule = false;  // instead: when what would run
  std::string against;    // instead: beside what a trace of ftexec measured
  uint64_t tokens = 0;    // to train on: how long that takes; 0: not asked
  int world_size = 0;     // 0: what the plan was compiled for
  // Given with --mesh: replica, shard.
  std::optional<std::pair<int, int>> mesh;
  std::string target;  // machine that seconds are estimated for, by name or file; empty: the plan's
  // Whose memory is counted; not given: that of the target.
  std::optional<ft::DeviceClass> device;
  // Live buffers at the peak to list; not given: none in the text, and in JSON as many as a bare --peak asks
  // for.
  static constexpr int kUsualPeak = 20;
  std::optional<int> peak;
  bool json = false;
};

// ftc report plan.bin ... -o report.html
struct ReportCommand {
  ExplainCommand subject;        // plans, ranks and machine
  std::vector<int> world_sizes;  // to show how far it scales; empty: the usual ones
  std::string run;               // metrics of a run of the plan; empty: none
  std::string trace;             // and its trace
  std::string output;            // "-": standard output
};

// ftc tune model.mlir --world-size=N ... [-o train.yaml]
struct TuneCommand {
  CompileCommand settings;       // model, --config, flags; output: train.yaml, empty: none
  std::vector<int> world_sizes;  // to show how far it scales; empty: that of the settings
  uint64_t memory_bytes = 0;     // of a rank's device; 0: the target's
  uint64_t host_bytes = 0;       // of a rank's host memory; 0: any
  bool space = false;            // instead: the table
  bool exhaustive = false;       // every point of it is compiled
  bool json = false;
};

// ftc dump plan.bin
struct DumpCommand {
  std::string plan;
  bool kernels = false;
};

// ftc verify plan.bin
struct VerifyCommand {
  std::string plan;
};

// ftc postmortem DIR [plan.bin] [--attempt=N]
struct PostmortemCommand {
  std::string folder;
  std::string plan;            // empty: none to compare with
  std::optional<int> attempt;  // not given: the last one
};

// ftc tokenize ...: for the program that does it
struct TokenizeCommand {
  std::vector<std::string> arguments;
};

using Command = std::variant<ModelCommand, ImportCommand, CompileCommand, ExplainCommand, ReportCommand,
                             TuneCommand, DumpCommand, VerifyCommand, PostmortemCommand, TokenizeCommand>;

// Calls `describe` with the command line.
void DescribeCommandLine(const std::function<void(const CLI::App&)>& describe);

// The command, or the exit status of a program that has nothing to do: 0 after --help, 2 after a usage error,
// which has been reported in one line.
std::variant<Command, int> ParseCommandLine(int argc, char** argv);

}  // namespace ftc
