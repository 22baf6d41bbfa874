// What a machine is measured to be.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "runtime/plan/target.h"
#include "tools/ftexec/calibrate/session.h"

namespace ft {

// Above it, as a part, a machine was not quiet.
inline constexpr double kQuiet = 0.03;

// Everything, over about `seconds`; the same on all ranks. What one host, or one rank, cannot show (links to
// others) is that of the nominal target of its kind. Errors: of the device and the ranks.
absl::StatusOr<Target> MeasureMachine(const CalibrationSession& session, double seconds);

// In one line all that makes figures that were just measured doubtful: that others had the machine, too, or
// that products are not as the form has them. Of a plan its kernels alone were measured. Empty: nothing.
enum class JustMeasured { kMachine, kKernels };
std::string DoubtOf(const Target& target, JustMeasured what);

}  // namespace ft
