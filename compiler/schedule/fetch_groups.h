// What a program brings in before it uses it: gathered units, state and activations from host memory.
#pragma once

#include "dialects/ftx/views.h"
#include "llvm/ADT/DenseMap.h"

namespace ft::compiler {

/// Instructions in a row that fetch something: copies from the host, casts into what is gathered,
/// all-gathers, and their waits. Only the last wait has to stand before the first use.
struct FetchGroup {
  llvm::SmallVector<mlir::Operation *> ops; // buffers, starts, inner waits and kernels, in order
  llvm::SmallVector<mlir::ftx::WaitOp> finalWaits;
  mlir::ftx::Stream stream; // of the last start
  bool isBackward = false;  // used in backward (or to compute again), or in the optimizer
  mlir::Value gathered;     // the buffer that the last start fills

  mlir::ftx::StartOp lastStart() const;
};

/// The groups of a program in order. Right after lowering: every start is followed by its wait.
llvm::SmallVector<FetchGroup> findFetchGroups(mlir::ftx::ProgramOp program);

/// Whether something brings what is used next to the device: a transfer into a buffer of the program. All
/// else takes something away, completes what stays there for the next step, or is a kernel of the host.
bool isFetch(mlir::Operation *beside);

/// The wait for what runs beside `compute`; null when there is none.
mlir::ftx::WaitOp waitOf(mlir::ftx::BesideOpInterface beside);

/// The first instruction in front of which `ops` can stand when they move up from `from` as far as right
/// behind the next of `limits`.
mlir::Operation *highestPlace(llvm::ArrayRef<mlir::Operation *> ops, mlir::Operation *from,
                              llvm::ArrayRef<mlir::Operation *> limits);

/// As conflict, but a wait touches what its transfer touches: the transfer may be running until then.
bool conflictInFlight(mlir::Operation *op, mlir::Operation *other);

} // namespace ft::compiler
