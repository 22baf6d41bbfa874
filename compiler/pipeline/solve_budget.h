// --remat=budget:BYTES: what to keep, recompute and offload so that a rank's arena stays below a budget at
// least cost.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/remat/layer_memory.h"
#include "mlir/IR/BuiltinOps.h"
#include "runtime/plan/mesh.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/target.h"

#include <functional>
#include <optional>
#include <string>

namespace ft::compiler {

struct BudgetProblem {
  // Of the device of a rank: its arena, and what `target` announces beside it.
  uint64_t bytes = 0;
  int worldSize = 1;
  std::optional<Mesh> mesh;        // else the plan's default for worldSize
  bool offload = false;            // activations may go to host memory
  proto::DType dtype = proto::F32; // of activations
  const Target *target = nullptr;  // what time is measured on, and whose device's scratch counts
};

struct BudgetSolution {
  bool fits = false;
  // When it fits.
  Choices choices; // by number among all forward ops; empty: everything is kept
  uint64_t arenaBytes = 0;
  double extraSeconds = 0;  // over keeping everything
  uint64_t besideBytes = 0; // what is announced beside the arena
  // When it does not: the same for every budget that is too small.
  uint64_t smallestBytes = 0;
  std::string smallestPeak; // what stands at the peak of the arena then

  int compilations = 0; // that it took
};

/// Compiles a module whose choices are marked (stage remat and all after it) into a plan, and leaves the
/// module that this was emitted from.
using CompileRest = std::function<absl::StatusOr<proto::Plan>(mlir::ModuleOp)>;

/// `module` stands before stage remat and stays as it is. Whatever is chosen has been compiled and bound: its
/// arena is within the budget. A larger budget never costs more; `smallestBytes` can be met, and nothing
/// below. Errors: those of `compile`.
absl::StatusOr<BudgetSolution> searchBudget(mlir::ModuleOp module, const BudgetProblem &problem,
                                            const CompileRest &compile);

/// Marks the forward ops of all training functions of `module`; they have the same ones.
void applyChoices(mlir::ModuleOp module, const Choices &choices);

/// Both in one. Errors: InvalidArgument when no choice fits, with the smallest budget that does and what
/// stands at its peak; those of `compile`.
absl::StatusOr<BudgetSolution> solveBudget(mlir::ModuleOp module, const BudgetProblem &problem,
                                           const CompileRest &compile);

/// What is said of a budget, "--remat=budget:1000", that cannot be met on a target.
absl::Status tooSmall(const std::string &budget, const BudgetSolution &solution, const Target &target);

/// "; 1000 bytes of it lie beside the arena, as h100-ib announces"; empty for 0 bytes.
std::string besideText(uint64_t bytes, const Target &target);

} // namespace ft::compiler
