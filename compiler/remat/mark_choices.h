// The attribute `remat` on the ops of a training step.
#pragma once

#include "compiler/remat/training_graph.h"

namespace ft::compiler {

/// Marks the ops that backward needs when those of `recomputed` are computed again: "recompute", "offload"
/// for those of `offloaded`, "keep" for the rest. Other marks are removed.
void markChoices(const TrainingGraph &graph, const llvm::DenseSet<mlir::Operation *> &recomputed,
                 const llvm::DenseSet<mlir::Operation *> &offloaded);

} // namespace ft::compiler
