// The kernels of a plan, each timed in its place.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/plan/bind.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/target.h"
#include "tools/ftexec/calibrate/session.h"

namespace ft {

struct PlanKernels {
  Target target;                           // the plan's, with its kernels as they were timed
  std::map<uint64_t, std::string> titles;  // of the kernels, by key
  int left_out = 0;                        // that the plan's target had, timed with other ranks or threads
  int without_room = 0;                    // that were timed, now or before, and a target has no room for
};

// Writes into `target` that its kernels are timed as `now` says (ranks, threads, instructions), beside how
// all else was measured, which stays. Whether the kernels that it has already were timed like that, too.
bool TakeTimedLayout(const Target::Measured& now, Target& target);

// `own` are the kernels of a plan, `others` those of other plans that `target` had. It takes them in this
// order, of each the longest first, as long as it stays below kMostTargetBytes. How many find no room.
int TakeTimedKernels(std::vector<Target::TimedKernel> own, std::vector<Target::TimedKernel> others,
                     Target& target);

// Walks the programs of a training step (or of evaluation, where nothing trains) of this rank's part of
// `bound` over about `seconds`, all ranks at once. The same on all ranks. Errors: of PlanWalk and the ranks.
absl::StatusOr<PlanKernels> TimePlanKernels(const CalibrationSession& session, const proto::Plan& plan,
                                            const BoundPlan& bound, double seconds);

}  // namespace ft
