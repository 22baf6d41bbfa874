// What backward needs of forward, in a function of one block whose ops have phases and layers.
#pragma once

#include "dialects/ft/dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace ft::compiler {

/// Ops of forward, inputs excepted, between which no other layer comes.
struct LayerRun {
  mlir::StringAttr layer;
  llvm::SmallVector<mlir::Operation *> ops;
};

bool isForward(mlir::Operation *op);
bool isBackward(mlir::Operation *op);

/// Computes activations, in forward, in a way that can be repeated.
bool isActivationOp(mlir::Operation *op);

class TrainingGraph {
public:
  explicit TrainingGraph(mlir::func::FuncOp function);

  /// Whether there is a backward phase at all.
  bool hasBackward() const { return !backward.empty(); }

  llvm::ArrayRef<LayerRun> runs() const { return layerRuns; }

  /// The number of the run of a forward op.
  unsigned runOf(mlir::Operation *op) const { return runNumbers.lookup(op); }

  /// The ops of backward that belong to the runs [begin, end), each with its run. Backward visits the runs in
  /// reverse; an op of another layer than the current run belongs to the next run down that has its layer, if
  /// there is one.
  llvm::ArrayRef<std::pair<mlir::Operation *, unsigned>> backwardOf(unsigned begin, unsigned end) const;

  /// Read by an op of backward.
  static bool isSaved(mlir::Value value);

  /// An op of forward reads a result of `op` in a run for which `isInside` is false.
  bool isReadOutside(mlir::Operation *op, llvm::function_ref<bool(unsigned run)> isInside) const;

  /// Activation ops that backward needs when those of `recomputed` are computed again where they are needed:
  /// for backward itself and for ops that are computed again. In the order of forward.
  llvm::SmallVector<mlir::Operation *> neededOps(const llvm::DenseSet<mlir::Operation *> &recomputed) const;

  /// The same for the ops of backward that belong to the last run: they come first.
  llvm::SmallVector<mlir::Operation *>
  neededAtOnce(const llvm::DenseSet<mlir::Operation *> &recomputed) const;

private:
  void assignBackward();
  llvm::SmallVector<mlir::Operation *> neededBy(llvm::ArrayRef<mlir::Operation *> readers,
                                                const llvm::DenseSet<mlir::Operation *> &recomputed) const;

  llvm::SmallVector<LayerRun> layerRuns;
  llvm::DenseMap<mlir::Operation *, unsigned> runNumbers;
  llvm::DenseMap<mlir::Operation *, unsigned> positions; // of forward ops
  llvm::SmallVector<mlir::Operation *> backward;
  llvm::SmallVector<std::pair<mlir::Operation *, unsigned>, 0> backwardRuns; // by descending runs
};

} // namespace ft::compiler
