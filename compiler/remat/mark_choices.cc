#include "compiler/remat/mark_choices.h"

namespace ft::compiler {

using namespace mlir;

void markChoices(const TrainingGraph &graph, const llvm::DenseSet<Operation *> &recomputed,
                 const llvm::DenseSet<Operation *> &offloaded) {
  for (const LayerRun &run : graph.runs())
    for (Operation *op : run.ops)
      op->removeAttr(mlir::ft::kRematAttr);
  for (Operation *op : graph.neededOps(recomputed)) {
    StringRef choice = recomputed.contains(op)  ? mlir::ft::kRematRecompute
                       : offloaded.contains(op) ? mlir::ft::kRematOffload
                                                : mlir::ft::kRematKeep;
    op->setAttr(mlir::ft::kRematAttr, StringAttr::get(op->getContext(), choice));
  }
}

} // namespace ft::compiler
