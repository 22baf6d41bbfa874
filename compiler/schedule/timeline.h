// Estimated times and exact bytes of a program at a mesh.
#pragma once

#include "dialects/ftx/views.h"
#include "runtime/plan/mesh.h"
#include "runtime/plan/target.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

#include <array>

namespace ft::compiler {

/// Sizes of buffers at a mesh, on a device, and how groups of ranks lie on nodes.
class Sizes {
public:
  Sizes(mlir::ModuleOp module, const Mesh &mesh, const Target &target);

  uint64_t bytesOf(mlir::ftx::BufferOp buffer) const;
  uint64_t roundedBytesOf(mlir::ftx::BufferOp buffer) const;
  /// Of a view of a whole buffer, or of this rank's slice of it.
  uint64_t bytesOf(const mlir::ftx::View &view) const;
  /// Part of a unit that a slice is: for kernels whose cost is written down for the whole.
  double shareOf(llvm::StringRef unit) const;
  const NodeLayout &layoutOf(std::optional<mlir::ftx::Axis> axis) const;

private:
  const int64_t shard;
  const DeviceClass device;
  std::array<NodeLayout, proto::Axis_ARRAYSIZE> layouts; // by axis
  llvm::StringMap<uint64_t> elements;                    // by unit
};

/// Seconds that a transfer takes once it has its stream for itself.
double transferSeconds(mlir::ftx::StartOp start, const Sizes &sizes, const Target &target);

/// When each instruction begins if no transfer keeps computation waiting. Instructions may move later; times
/// stay those of the order at construction.
class Timeline {
public:
  Timeline(mlir::ftx::ProgramOp program, const Sizes &sizes, const Target &target);
  double beginOf(mlir::Operation *instruction) const { return begin.lookup(instruction); }

private:
  llvm::DenseMap<mlir::Operation *, double> begin;
};

/// Device bytes live at each instruction, persistent buffers included.
class LiveMemory {
public:
  LiveMemory(mlir::ftx::ProgramOp program, const Sizes &sizes);
  uint64_t liveAt(mlir::Operation *instruction) const { return live[index.lookup(instruction)]; }
  /// `bytes` more are live from `first` to before `last`.
  void add(mlir::Operation *first, mlir::Operation *last, uint64_t bytes);
  void add(mlir::Operation *instruction, uint64_t bytes) { live[index.lookup(instruction)] += bytes; }

private:
  llvm::DenseMap<mlir::Operation *, size_t> index;
  llvm::SmallVector<uint64_t> live;
};

} // namespace ft::compiler
