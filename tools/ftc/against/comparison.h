// What a run did, beside what its plan was reckoned to take.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/ftc/against/trace_file.h"
#include "tools/ftc/explain.h"

namespace ftc {

// Seconds of a step. Measured ones are medians over steps; of the rank in the middle, and of the slowest.
struct Against {
  double predicted = 0, median = 0, slowest = 0;
};

struct ClassAgainst {
  std::string name;  // "matmul", "all_gather"
  int64_t runs = 0;  // of instructions in a step
  Against seconds;
};

struct InstructionAgainst {
  int program = 0, instruction = 0;
  int64_t runs = 0;  // in a step
  Against seconds;   // of all of them
};

struct Comparison {
  int ranks = 0;
  int64_t steps = 0, left_out = 0;    // compared; the first ones, which are slower
  int64_t first_step = 0;             // of the run, the first that is compared
  Against step;                       // from the first event of a step to the last
  Against untraced;                   // the same of steps that are not traced; 0: not known
  double launch_s = 0;                // of the host, which only traced steps have; 0: none is assumed
  Against computing, exposed;         // kernels of the stream compute; that it waited
  std::vector<ClassAgainst> classes;  // by what they take together, the most first
  std::vector<InstructionAgainst> instructions;  // that every rank measured, in the order of the plan
  std::vector<InstructionAgainst> worst;         // of them, by what they are off in a step; ten at most
  int64_t unmeasured = 0;                        // instructions of a step that take time and have no event
};

// That the trace in the file `path` is of this plan, whose hash that is, and of such a device as the target.
// InvalidArgument else, with the file's name.
absl::Status CheckTrace(const std::string& path, const ft::TraceRun& run, const Explained& explained,
                        uint64_t hash);

// `explained` is of the mesh and device of the trace in the file `path`. What is predicted is a step of the
// target as it is; where its graphs are recorded but traced steps are not, one with launches by the host.
// InvalidArgument, with the file's name, for a trace of instructions that no step of the plan has.
absl::StatusOr<Comparison> Compare(const std::string& path, const Explained& explained,
                                   const MeasuredTrace& trace);

std::string AgainstText(const Explained& explained, const MeasuredTrace& trace, const Comparison& comparison);
std::string AgainstJson(const Explained& explained, const MeasuredTrace& trace, const Comparison& comparison);

}  // namespace ftc
