// A trace of ftexec, as it is compared with a prediction.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/metrics/trace.h"

namespace ftc {

// What a stream of a rank did.
struct MeasuredEvent {
  int rank = 0;
  bool is_wait = false;   // in front of the instruction
  bool computes = false;  // on the stream compute
  std::string program;
  int64_t instruction = 0;
  int64_t step = 0, micro_step = 0;
  double begin = 0;    // seconds of the clock on the wall, of which little is left for fractions
  double seconds = 0;  // that it took, to the nanosecond
};

struct MeasuredTrace {
  ft::TraceRun run;  // equal for all ranks
  int ranks = 0;
  std::vector<MeasuredEvent> events;
};

// What ftexec --trace has written, of instructions; all else in it is passed over. Errors: the system's;
// InvalidArgument with line and reason for what is none, or was written by an ftexec that did not say its
// plan.
absl::StatusOr<MeasuredTrace> ReadTrace(const std::string& path);

}  // namespace ftc
