// What outlives a run of a program: flat buffers of units and the buffers of ports. Shared by all programs of
// a job.
#pragma once

#include "dialects/ft/dialect.h"
#include "dialects/ftx/dialect.h"
#include "llvm/ADT/StringMap.h"

namespace ft::compiler {

struct UnitState {
  mlir::ft::UnitOp unit;
  llvm::SmallVector<mlir::ft::ParameterOp> parameters; // by offset
  bool trained = false;                                // has gradients and moments
  mlir::Value values, gradients, expAvg, expAvgSq;     // !ftx.buffer; the last three null unless trained

  llvm::StringRef name() const { return mlir::ft::UnitOp(unit).getSymName(); }
  /// begin, end of each parameter in elements of the unit.
  llvm::SmallVector<int64_t> segments() const;
};

class JobState {
public:
  /// Makes the buffers of all units at `builder`. Units whose gradients an ft.pack makes are trained. Extents
  /// at rest come from the module's attributes ft.shards_parameters, ft.shards_gradients and
  /// ft.shards_optimizer.
  JobState(mlir::ModuleOp module, mlir::OpBuilder builder);

  const UnitState &unit(llvm::StringRef name) const { return units[unitIndex.lookup(name)]; }
  llvm::ArrayRef<UnitState> allUnits() const { return units; }
  mlir::ft::ParameterOp parameter(llvm::StringRef name) const { return parameters.lookup(name); }

  /// The buffer of the port `name`, made when it is first asked for.
  mlir::Value port(llvm::StringRef name, mlir::RankedTensorType type);

private:
  void makeBuffers(UnitState &state, mlir::ModuleOp module);
  mlir::Value makeFlat(const UnitState &state, llvm::StringRef role, mlir::ftx::MemoryClass memoryClass,
                       bool slice);

  mlir::OpBuilder builder;
  llvm::SmallVector<UnitState> units;
  llvm::StringMap<unsigned> unitIndex;
  llvm::StringMap<mlir::ft::ParameterOp> parameters;
  llvm::StringMap<mlir::Value> ports;
};

/// Bytes of a dense tensor.
int64_t bytesOf(mlir::RankedTensorType type);

/// Bytes of one element of a parameter at rest, of its gradient and of its moments.
inline constexpr int64_t kMasterBytes = 4;

} // namespace ft::compiler
