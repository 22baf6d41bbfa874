// A compiled plan at a mesh, and what is live where in it.
#pragma once

#include "dialects/ft/dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "runtime/plan/bind.h"
#include "runtime/plan/plan.pb.h"
#include "llvm/ADT/DenseMap.h"

#include <string>

namespace ft::compiler {

struct MeasuredPlan {
  proto::Plan plan;
  BoundPlan bound;
};

/// The most bytes that are live when the kernel of an op runs, or since that of the op before.
struct LiveAt {
  uint64_t all = 0;
  uint64_t background = 0; // without activations and scratch
};

/// For the ops of `train`, from which program train_step of the plan was made; without those that became
/// something else.
llvm::DenseMap<mlir::Operation *, LiveAt> liveAtOps(const MeasuredPlan &measured, mlir::func::FuncOp train);

/// "its peak is at ..., with ... bytes that live through the step; largest of the others: ..."
std::string describePeak(const MeasuredPlan &measured);

} // namespace ft::compiler
