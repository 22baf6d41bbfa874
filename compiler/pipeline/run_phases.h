// Phases run on a module, one by one or down to a plan.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/emit/emit_plan.h"
#include "compiler/pipeline/diagnostics.h"
#include "compiler/pipeline/phases.h"
#include "runtime/plan/plan.pb.h"

namespace ft::compiler {

/// Its place in phases().
size_t phaseNumber(llvm::StringRef name);

/// The phase's own passes, or an error at the op that it refused.
absl::Status runPhase(const Phase &phase, mlir::ModuleOp module, const CompileOptions &options,
                      const FirstError &error);

/// Phases [begin, end), by number.
absl::Status runPhases(size_t begin, size_t end, mlir::ModuleOp module, const CompileOptions &options,
                       const FirstError &error);

/// The plan of a module that all phases have passed over.
absl::StatusOr<proto::Plan> emit(mlir::ModuleOp module, const PlanInfo &info, const FirstError &error);

} // namespace ft::compiler
