// Lowers one function to one program.
#pragma once

#include "compiler/schedule/job_state.h"
#include "compiler/schedule/placement.h"
#include "compiler/schedule/program_builder.h"

namespace ft::compiler {

class FunctionLowering {
public:
  FunctionLowering(mlir::func::FuncOp function, JobState &state, ProgramBuilder &program);

  /// Emits an error at the op that cannot be lowered.
  llvm::LogicalResult run();

private:
  llvm::LogicalResult lower(mlir::Operation *op);

  // Ops that say where values are.
  void lowerInput(mlir::ft::InputOp op);
  void lowerShard(mlir::ft::ShardOp op);
  llvm::LogicalResult lowerView(mlir::ft::ViewOp op);
  void lowerPack(mlir::ft::PackOp op);
  void lowerReturn(mlir::func::ReturnOp op);

  // Communication.
  void lowerGather(mlir::ft::GatherOp op);
  void lowerReduceScatter(mlir::ft::ReduceScatterOp op);
  void lowerAllReduce(mlir::ft::AllReduceOp op);

  // Computation.
  void lowerKernel(mlir::ft::KernelOpInterface op);
  void lowerAdamw(mlir::ft::AdamwOp op);
  void lowerInit(mlir::ft::InitOp op);

  /// Where result `index` is to be written; copies what it accumulates into when that lies elsewhere.
  mlir::ftx::View placeResult(mlir::OpResult result);
  mlir::ftx::View placeHome(Home home, mlir::Type type);
  mlir::ftx::View newBuffer(mlir::OpResult result);
  bool owns(mlir::Value value) const;
  bool canReuse(mlir::OpResult result) const;

  /// The flat gradient that `pack` makes; its gaps and its padding are zeroed when it is first asked for.
  mlir::Value flatGradient(mlir::ft::PackOp pack);

  mlir::func::FuncOp function;
  JobState &state;
  ProgramBuilder &program;
  Placement placement;
  llvm::DenseMap<mlir::Value, mlir::ftx::View> places;
  llvm::DenseMap<mlir::Operation *, mlir::Value> flatGradients; // by ft.pack
};

} // namespace ft::compiler
