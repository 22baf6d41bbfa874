// Collectives along each axis, and what transfers and a product do to each other.
#pragma once

#include "absl/status/status.h"
#include "runtime/plan/target.h"
#include "tools/ftexec/calibrate/kernel_bench.h"

namespace ft {

// Each kind at eight sizes along each axis that has several ranks, over about `seconds` together: into
// `target.collectives`, and the links where they say it. Errors: of the communicators.
absl::Status MeasureCollectives(const CalibrationSession& session, double seconds, Target& target);

// A product beside each kind of collective along the first axis, and beside copies between host and device:
// `target.overlaps`. Errors: of the communicators and the device.
absl::Status MeasureOverlap(KernelBench& bench, double seconds, Target& target);

}  // namespace ft
