// Says of a step that is not finite which rank, layer and op it began with, after the ranks have replayed it
// (nan_trace.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/collective/communicator.h"
#include "runtime/executor/nan_trace.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// What one rank has found.
struct NanFinding {
  enum class Kind : int32_t {
    kOwn,       // something of its own
    kReceived,  // what it got from other ranks was not finite, and it had nothing to do with it
    kLost,      // the step is not finite again, but not where that began
    kNothing    // replayed the step is finite
  };
  Kind kind = Kind::kNothing;
  // Where it began, to compare with other ranks.
  int64_t micro_step = 0;
  int64_t instruction = 0;
  // "micro-step 3, layer h.4, matmul (forward, train_micro 57): 3 of 4096 elements are NaN, first at 17; its
  // inputs were finite"
  std::string text = {};
};

NanFinding FindingOf(const proto::Plan& plan, const NanTrace& trace);

// Of what began earliest, and on which ranks: "rank 2, micro-step 3, ...".
std::string EarliestFinding(const std::vector<NanFinding>& by_rank);

// What each rank found. All ranks call it, with a communicator over them, while no program runs; null: there
// is one rank alone. Errors: those of the communicator.
absl::StatusOr<std::vector<NanFinding>> GatherFindings(const NanFinding& own, Communicator* world);

}  // namespace ft
