// What is decided by compiling ahead: how transfers are scheduled, and what is recomputed, so that a rank's
// arena, with what the target announces beside it, stays within the bytes that --remat=budget and
// --memory-budget allow.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/pipeline/diagnostics.h"
#include "compiler/pipeline/options.h"
#include "mlir/IR/BuiltinOps.h"

namespace ft::compiler {

// `options.mesh` is set: that of the ranks that budgets are meant for.

/// Whether `settleSchedule` has something to do.
bool isScheduleOpen(const CompileOptions &options);

/// Ahead of stage schedule: with prefetch=auto settles in `options` the fastest, by simulation, of
/// what the cost model makes within the memory budget and of prefetch=pre and none. So auto is never slower
/// than they are, and fits where they fit. Errors: InvalidArgument when nothing fits, with what is needed.
absl::Status settleSchedule(mlir::ModuleOp module, CompileOptions &options, const FirstError &error);

/// Ahead of stage remat, with remat=budget: marks what is recomputed and offloaded, and settles the schedule
/// in `options`. Returns the seconds that recomputation and copies add to a step. What can be met
/// with prefetch=pre or none can be met with auto. Errors: InvalidArgument when no choice fits, with the
/// smallest budget that does.
absl::StatusOr<double> meetRematBudget(mlir::ModuleOp module, CompileOptions &options,
                                       const FirstError &error);

} // namespace ft::compiler
