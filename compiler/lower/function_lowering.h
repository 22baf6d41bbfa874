// Lowers one function to one program.
#pragma once

#include "compiler/lower/job_state.h"
#include "compiler/lower/program_builder.h"
#include "compiler/lower/value_uses.h"

namespace ft::compiler {

class FunctionLowering {
public:
  FunctionLowering(mlir::func::FuncOp function, JobState &state, ProgramBuilder &program);

  /// Emits an error at the op that cannot be lowered.
  llvm::LogicalResult run();

private:
  llvm::LogicalResult lower(mlir::Operation *op);

  // Ops that say where values are (function_lowering.cc).
  void lowerInput(mlir::ft::InputOp op);
  llvm::LogicalResult lowerView(mlir::ft::ViewOp op);
  void lowerReshape(mlir::ft::ReshapeOp op);
  void lowerPack(mlir::ft::PackOp op);
  llvm::LogicalResult lowerReturn(mlir::func::ReturnOp op);

  // Computation (lower_kernels.cc).
  void lowerKernel(mlir::ft::KernelOpInterface op);
  /// Of a tensor, or of a unit before padding, whole or this rank's slice.
  uint64_t bytesAt(const mlir::ftx::View &view) const;
  mlir::LogicalResult lowerAccumulate(mlir::ft::AccumulateOp op);
  mlir::LogicalResult lowerAccumulated(mlir::ft::AccumulatedOp op);
  void lowerUpdateScaler(mlir::ft::UpdateScalerOp op);

  // The state of units (lower_state.cc).
  void lowerUpdate(mlir::ft::UpdateOp op);
  void lowerLoadState(mlir::ft::LoadStateOp op);
  /// What is written instead of the parameter.
  mlir::ftx::View placeDirection(mlir::ft::UpdateOp op, bool host = false);
  /// The update in host memory (lower_host_update.cc).
  void lowerHostUpdate(mlir::ft::UpdateOp op, const UnitState &unit);
  /// What the update reads, copied down.
  mlir::ftx::View gradientOnHost(mlir::ft::UpdateOp op, const UnitState &unit);
  mlir::ftx::View tensorOnHost(mlir::Value value, const Tag &tag);
  void lowerInit(mlir::ft::InitOp op);
  /// What follows from the fp32 parameters once all of them are drawn.
  void finishInit();
  void finishInit(const UnitState &unit);
  mlir::ftx::View initialValues(const UnitState &unit);

  // Communication and copies (lower_transfers.cc).
  void lowerGather(mlir::ft::GatherOp op);
  void lowerFetch(mlir::ft::FetchOp op);
  void lowerReduceScatter(mlir::ft::ReduceScatterOp op);
  void lowerAllReduce(mlir::ft::AllReduceOp op);
  void lowerDistribute(mlir::ft::DistributeOp op);
  void lowerCollect(mlir::ft::CollectOp op);
  void refresh(const UnitState &unit, const Tag &tag);
  void lowerOffload(mlir::ft::OffloadOp op);
  void lowerReload(mlir::ft::ReloadOp op);
  void copyIn(const mlir::ftx::View &host, const mlir::ftx::View &device, const Tag &tag);
  void copyOut(const mlir::ftx::View &device, const mlir::ftx::View &host, const Tag &tag);
  /// A buffer as long as `view`, which is a whole or an own slice, called after its buffer; on the device
  /// unless `host`.
  mlir::ftx::View makeLike(const mlir::ftx::View &view, llvm::StringRef suffix,
                           mlir::ftx::MemoryClass memoryClass, const Tag &tag, bool host = false);

  // Places of results (function_lowering.cc).
  /// Where result `index` is to be written; copies what it accumulates into when that lies elsewhere.
  mlir::ftx::View placeResult(mlir::OpResult result);
  mlir::ftx::View placeDestination(Destination destination, mlir::Type type);
  mlir::ftx::View newBuffer(mlir::OpResult result);
  /// Whether what wants `value` in `place` finds it there.
  bool liesIn(mlir::Value value, Destination destination, const mlir::ftx::View &place) const;
  bool owns(mlir::Value value) const;
  /// Which of how many things of ranks a value is computed of; none where every rank has it.
  std::optional<Share> shareOf(mlir::Value value) const;
  /// Gives the results of an op the share of its operands.
  llvm::LogicalResult findShare(mlir::Operation *op);
  bool canReuse(mlir::OpResult result) const;
  /// The flat gradient that `pack` makes; its gaps and its padding are zeroed when it is first asked for.
  mlir::Value flatGradient(mlir::ft::PackOp pack);
  /// Of what goes into a reduction, if not elsewhere before: where it stays whole at rest, or of the program.
  mlir::Value placeForReduction(mlir::Value flat, const Tag &tag);
  /// A buffer of the program for a flat gradient or a slice of one.
  mlir::Value gradientBuffer(const UnitState &unit, mlir::Type type, llvm::StringRef name,
                             mlir::ftx::MemoryClass memoryClass, const Tag &tag);

  mlir::func::FuncOp function;
  JobState &state;
  ProgramBuilder &program;
  ValueUses uses;
  llvm::DenseMap<mlir::Value, mlir::ftx::View> places;
  llvm::DenseMap<mlir::Value, Share> shares;
  llvm::DenseMap<mlir::Operation *, mlir::Value> flatGradients; // by ft.pack
  llvm::DenseMap<mlir::Value, mlir::ftx::View> onHost;          // tensors that were copied down
  llvm::StringMap<mlir::ftx::View> drawn; // by unit: where @init draws, when not at rest
};

/// Inherent attributes, sorted by name, absent unit attributes as false, without symbols: a kernel finds all
/// that its op declares. Of a cluster its body.
llvm::SmallVector<mlir::NamedAttribute> kernelAttributes(mlir::Operation *op);

/// Of an update its body, and where parameters lie.
llvm::SmallVector<mlir::NamedAttribute> updateAttributes(mlir::ft::UpdateOp op);

/// True when `view` lies in host memory.
bool isOnHost(const mlir::ftx::View &view);

} // namespace ft::compiler
