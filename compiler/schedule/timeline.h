// Estimated times and exact bytes of a program at a mesh.
#pragma once

#include "compiler/schedule/buffer_accesses.h"
#include "compiler/schedule/range_max.h"
#include "dialects/ftx/views.h"
#include "runtime/plan/mesh.h"
#include "runtime/plan/target.h"
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
  const NodeLayout &layoutOf(std::optional<mlir::ft::Axis> axis) const;

private:
  const int64_t shard;
  const DeviceClass device;
  std::array<NodeLayout, proto::Axis_ARRAYSIZE> layouts; // by axis
  llvm::StringMap<uint64_t> elements;                    // by unit
};

/// Seconds that a transfer or a kernel of the host takes once it has its stream for itself.
double secondsBeside(mlir::ftx::BesideOpInterface beside, const Sizes &sizes, const Target &target);

/// When each instruction begins if nothing beside computation keeps it waiting.
class Timeline {
public:
  Timeline(const InstructionOrder &order, const Sizes &sizes, const Target &target);
  /// By number; that behind the last is the end of the program.
  double beginOf(size_t number) const { return begins[number]; }
  /// The last instruction that begins at `latest` or before; none when all begin later.
  std::optional<size_t> lastBeginningBy(double latest) const;
  /// The first that begins at `earliest` or later, `size()` when none does.
  size_t firstBeginningAt(double earliest) const;

private:
  llvm::SmallVector<double, 0> begins; // by number, ascending
};

/// Device bytes live at each instruction, persistent buffers included.
RangeMax liveBytes(const InstructionOrder &order, mlir::ftx::ProgramOp program, const Sizes &sizes);

} // namespace ft::compiler
