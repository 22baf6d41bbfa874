// Estimated times and exact bytes of a program at a mesh, as runtime/plan has them of what will be emitted.
#pragma once

#include "compiler/encode/encode.h"
#include "compiler/schedule/buffer_accesses.h"
#include "compiler/schedule/range_max.h"
#include "runtime/plan/mesh.h"
#include "runtime/plan/target.h"

#include <vector>

namespace ft::compiler {

/// What the buffers and instructions of a module cost a rank.
class Costs {
public:
  /// An error is emitted at what a plan cannot hold.
  static mlir::FailureOr<Costs> of(mlir::ModuleOp module, const Mesh &mesh, const Target &target);

  /// The room that a buffer takes.
  uint64_t bytesOf(mlir::ftx::BufferOp buffer) const;

  /// Of each instruction, once it has its stream for itself. Errors as above.
  mlir::FailureOr<std::vector<double>> secondsOf(mlir::ftx::ProgramOp program) const;

private:
  Costs(mlir::ModuleOp module, const Mesh &mesh, const Target &target)
      : numbers(module), mesh(mesh), target(target) {}

  Numbering numbers;
  proto::Plan tables;
  Mesh mesh;
  const Target &target;
};

/// When each instruction begins if nothing beside computation keeps it waiting.
class Timeline {
public:
  /// `seconds` of each instruction.
  Timeline(const InstructionOrder &order, std::vector<double> seconds);
  double secondsOf(size_t number) const { return seconds[number]; }
  /// By number; that behind the last is the end of the program.
  double beginOf(size_t number) const { return begins[number]; }
  /// The last instruction that begins at `latest` or before; none when all begin later.
  std::optional<size_t> lastBeginningBy(double latest) const;
  /// The first that begins at `earliest` or later, `size()` when none does.
  size_t firstBeginningAt(double earliest) const;

private:
  std::vector<double> seconds, begins; // by number; the latter ascending
};

/// Device bytes live at each of `instructions`, persistent buffers included.
RangeMax liveBytes(mlir::ftx::ProgramOp program, size_t instructions, const Costs &costs);

} // namespace ft::compiler
