// --remat=budget:BYTES: what to keep, recompute and offload so that a rank's arena stays below a budget at
// least cost.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "mlir/IR/BuiltinOps.h"
#include "runtime/plan/mesh.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/target.h"

#include <functional>
#include <optional>

namespace ft::compiler {

struct BudgetProblem {
  uint64_t bytes = 0; // of the device arena of a rank
  int worldSize = 1;
  std::optional<Mesh> mesh;        // else the plan's default for worldSize
  bool offload = false;            // activations may go to host memory
  proto::DType dtype = proto::F32; // of activations
  const Target *target = nullptr;  // what time is measured on, and whose device's scratch counts
};

struct BudgetSolution {
  uint64_t arenaBytes = 0;
  double extraSeconds = 0; // over keeping everything
  int compilations = 0;    // that it took
};

/// Compiles a module whose choices are marked (phase remat and all after it) into a plan.
using CompileRest = std::function<absl::StatusOr<proto::Plan>(mlir::ModuleOp)>;

/// Marks the forward ops of all training functions of `module`, which stands before phase remat. Whatever is
/// chosen has been compiled and bound: its arena is within the budget. A larger budget never costs more.
/// Errors: InvalidArgument when no choice fits, with the smallest budget that does and what stands at its
/// peak; those of `compile`.
absl::StatusOr<BudgetSolution> solveBudget(mlir::ModuleOp module, const BudgetProblem &problem,
                                           const CompileRest &compile);

} // namespace ft::compiler
