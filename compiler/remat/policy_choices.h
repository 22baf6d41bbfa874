// What a rule, a policy other than a budget, asks for.
#pragma once

#include "compiler/remat/policy.h"
#include "compiler/remat/training_graph.h"

namespace ft::compiler {

/// The forward ops that are computed again; none for a budget.
llvm::DenseSet<mlir::Operation *> recomputedBy(const TrainingGraph &graph, const RematPolicy &policy);

/// What can wait in host memory when those are computed again: no scalars, and nothing that backward reads at
/// once.
llvm::DenseSet<mlir::Operation *> offloadable(const TrainingGraph &graph,
                                              const llvm::DenseSet<mlir::Operation *> &recomputed);

} // namespace ft::compiler
