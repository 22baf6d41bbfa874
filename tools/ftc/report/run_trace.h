// The trace of a run (ftexec --trace), held against the plan that it is said to be of: how long each
// instruction took, as `ftc explain --against` says it.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/ftc/against/comparison.h"
#include "tools/ftc/explain.h"

namespace ftc {

struct RunTrace {
  // Each program as it ran on the first rank the last time in the first step that is compared, in seconds
  // since it began.
  struct Event {
    int program = 0, instruction = 0;
    bool wait = false;  // before the instruction
    double begin = 0, end = 0;
  };

  std::string file;  // its name, without folders
  std::string link;  // that collectives went over where one was emulated; else empty
  Comparison comparison;
  std::vector<Event> events;
};

// Errors: those of the system (exit status 74); InvalidArgument for what is no trace of ftexec, or one of
// another plan, mesh or kind of device than `explained`.
absl::StatusOr<RunTrace> ReadRunTrace(const std::string& path, const Explained& explained);

}  // namespace ftc
