// The trace of a run (ftexec --trace), held against the plan that it is said to be of: how long each
// instruction took.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/ftc/explain.h"

namespace ftc {

struct RunTrace {
  // In seconds: the median over the steps of each rank, of that the median over ranks, and the slowest.
  struct Measured {
    int program = 0, instruction = 0;
    double median = 0, slowest = 0;
  };
  // Instructions of one title and stream, in a step.
  struct Class {
    std::string title, stream;
    uint64_t count = 0;
    double predicted = 0, measured = 0;
  };
  // Each program as it ran on the first rank the last time in a step, in seconds since it began.
  struct Event {
    int program = 0, instruction = 0;
    bool wait = false;  // before the instruction
    double begin = 0, end = 0;
  };

  std::string file;  // its name, without folders
  int ranks = 0;
  int64_t steps = 0;  // of each rank; the first is left out where there are more
  std::vector<Measured> measured;
  std::vector<Class> classes;  // those that differ most first
  std::vector<Event> events;
  double waited_median = 0, waited_slowest = 0;  // of stream compute, in a step
};

// Errors: those of the system (exit status 74); InvalidArgument for what is no trace of ftexec, or one of
// another plan than `explained`.
absl::StatusOr<RunTrace> ReadRunTrace(const std::string& path, const Explained& explained);

}  // namespace ftc
