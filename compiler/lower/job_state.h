// What outlives a run of a program: flat buffers of units and the buffers of ports. Shared by all programs of
// a job.
#pragma once

#include "dialects/ft/dialect.h"
#include "dialects/ftx/views.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

namespace ft::compiler {

/// A unit, what its ft.unit says of it and the buffers of its state.
struct UnitState {
  explicit UnitState(mlir::ft::UnitOp unit)
      : unit(unit), residency(unit.residencyOrWhole()), compute(unit.computeType()),
        reduce(unit.reduceType()), accumulate(unit.accumulateType()), master(unit.masterType()),
        workingCopy(unit.getWorkingCopy()) {}

  mlir::ft::UnitOp unit;

  mlir::ft::ResidencyAttr residency;
  mlir::Type compute;    // element type that is computed with
  mlir::Type reduce;     // element type of gradients
  mlir::Type accumulate; // element type of their sums over micro-steps
  mlir::Type master;     // element type of the weights that are updated
  bool workingCopy;
  bool trained = false;       // has a gradient
  bool hostGradients = false; // which goes to host memory, where it is updated
  llvm::SmallVector<llvm::StringRef> optimizerRoles;
  // States that do not have an element for each of the unit's.
  llvm::MapVector<llvm::StringRef, std::pair<mlir::ft::StateLayout, mlir::RankedTensorType>> wholeStates;

  llvm::StringMap<mlir::Value> buffers; // !ftx.buffer, by role

  llvm::StringRef name() const { return mlir::ft::UnitOp(unit).getSymName(); }
  mlir::FlatSymbolRefAttr symbol() const;
  // Else slices.
  bool wholeParameters() const { return residency.getParameters() == mlir::ft::Extent::whole; }
  bool wholeGradients() const { return residency.getGradients() == mlir::ft::Extent::whole; }
  bool wholeOptimizer() const { return residency.getOptimizer() == mlir::ft::Extent::whole; }
  bool hostParameters() const { return residency.isOnHost(mlir::ft::HostParts::parameters); }
  bool hostOptimizer() const { return residency.isOnHost(mlir::ft::HostParts::optimizer); }
  bool hostStep() const { return trained && residency.isOnHost(mlir::ft::HostParts::update); }
  /// Of a frozen unit, nothing is kept by the optimizer.
  bool wholeMaster() const { return trained ? wholeOptimizer() : wholeParameters(); }
  /// Weights lie on the device, in "parameters", and a copy of their type that is updated, "master", on the
  /// host.
  bool hasTwin() const { return hostStep() && !hostParameters() && compute == master; }

  /// The parameters at rest that are updated, all that the rank holds.
  mlir::ftx::View masterView() const;
  /// Those of them that this rank updates.
  mlir::ftx::View updatedMaster() const;
  /// What this rank updates of the copy that is computed with; absent without one.
  mlir::ftx::View updatedWorkingCopy() const;
  /// The parameters at rest with elements of type `element`: those that are computed with or those that are
  /// updated.
  mlir::ftx::View atRest(mlir::Type element) const;
  /// A buffer of state of the optimizer.
  mlir::ftx::View state(llvm::StringRef role) const;
  /// One of `wholeStates`.
  mlir::ftx::View wholeState(llvm::StringRef role) const;
  /// Reduced gradients at rest: all of them, and this rank's slice. On the host those that it updates with.
  mlir::ftx::View gradients() const;
  mlir::ftx::View gradientSlice() const;
};

class JobState {
public:
  /// Makes the buffers of all units at `builder`.
  JobState(mlir::ModuleOp module, mlir::OpBuilder builder);

  const UnitState &unit(llvm::StringRef name) const { return units[unitIndex.lookup(name)]; }
  llvm::ArrayRef<UnitState> allUnits() const { return units; }
  mlir::ft::ParameterOp parameter(llvm::StringRef name) const { return parameters.lookup(name); }

  /// The buffer of the port `name`, made when it is first asked for.
  mlir::Value port(llvm::StringRef name, mlir::RankedTensorType type);

  /// The sum over micro-steps called `name`, of a flat gradient, a slice or a tensor; made when it is first
  /// asked for.
  mlir::ftx::View sum(llvm::StringRef name, mlir::Type type);

private:
  void makeBuffers(UnitState &state);
  /// Adds a flat buffer in the role `role`.
  void addFlat(UnitState &state, llvm::StringRef role, mlir::ftx::MemoryClass memoryClass, bool whole,
               mlir::Type element, bool host);

  void addWhole(UnitState &state, llvm::StringRef role, mlir::ft::StateLayout layout,
                mlir::RankedTensorType type);

  mlir::OpBuilder builder;
  llvm::SmallVector<UnitState> units;
  llvm::StringMap<unsigned> unitIndex;
  llvm::StringMap<mlir::ft::ParameterOp> parameters;
  llvm::StringMap<mlir::Value> ports;
};

/// Bytes of a dense tensor, of one element.
int64_t bytesOf(mlir::RankedTensorType type);
int64_t bytesOf(mlir::Type element);

/// Whether the host computes an update whose unit's step is there: all but a direction that takes no state
/// from there, which is made where the gradient is.
bool mayRunOnHost(mlir::ft::UpdateOp update);

/// Whether the gradient of an update is what was made of directions, of whole parameters, and none of
/// backward's.
bool isOfWhole(mlir::Value gradient);

/// Of a flat buffer or a slice.
mlir::FlatSymbolRefAttr unitOf(mlir::Type type);
mlir::Type elementOf(mlir::Type flatOrSlice);

} // namespace ft::compiler
