// Integers, loops and branches of kernels, beside lanes.
#pragma once

#include "compiler/codegen/lane_math.h"

namespace ft::compiler {

struct KernelBuilder : LaneBuilder {
  using LaneBuilder::LaneBuilder;
  using LanesList = llvm::SmallVector<Lanes>;
  /// What is carried on; `index` is an i64.
  using LoopStep = llvm::function_ref<LanesList(mlir::Value index, llvm::ArrayRef<Lanes> carried)>;

  // Of i64.
  mlir::Value number(int64_t n);
  mlir::Value plus(mlir::Value a, int64_t n);
  mlir::Value plus(mlir::Value a, mlir::Value b);
  mlir::Value times(mlir::Value a, int64_t n);
  mlir::Value rest(mlir::Value a, int64_t n);
  mlir::Value quotient(mlir::Value a, int64_t n);
  mlir::Value isLess(mlir::Value a, mlir::Value b); // i1

  /// For begin, begin + by, ... below end.
  LanesList loop(mlir::Value begin, mlir::Value end, int64_t by, llvm::ArrayRef<Lanes> carried,
                 LoopStep step);
  void when(mlir::Value condition, llvm::function_ref<void()> then);
  /// What `then` gives where the condition holds, and what `otherwise` gives where not; of the same types.
  LanesList choose(mlir::Value condition, llvm::function_ref<LanesList()> then,
                   llvm::function_ref<LanesList()> otherwise);
};

} // namespace ft::compiler
