// Stages run on a module, one by one or down to a plan.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/emit/emit_plan.h"
#include "compiler/pipeline/diagnostics.h"
#include "compiler/pipeline/stages.h"
#include "runtime/plan/plan.pb.h"

namespace ft::compiler {

/// Its place in stages().
size_t stageNumber(llvm::StringRef name);

/// The stage's own passes, or an error at the op that it refused.
absl::Status runStage(const Stage &stage, mlir::ModuleOp module, const CompileOptions &options,
                      const FirstError &error);

/// Stages [begin, end), by number.
absl::Status runStages(size_t begin, size_t end, mlir::ModuleOp module, const CompileOptions &options,
                       const FirstError &error);

/// The plan of a module that all stages have passed over.
absl::StatusOr<proto::Plan> emit(mlir::ModuleOp module, const PlanInfo &info, const FirstError &error);

} // namespace ft::compiler
