// A compiled plan at a mesh, and what is live where in it.
#pragma once

#include "dialects/ft/dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "runtime/plan/bind.h"
#include "runtime/plan/plan.pb.h"
#include "llvm/ADT/DenseMap.h"

#include <string>
#include <vector>

namespace ft::compiler {

struct MeasuredPlan {
  proto::Plan plan;
  BoundPlan bound;
  // Of each instruction of train_step, the numbers of the ops that it computes (op_numbers.h).
  std::vector<std::vector<unsigned>> opsOfStep;
};

/// The most bytes that are live when a kernel of an op runs, or since the kernel before.
struct LiveAt {
  uint64_t all = 0;
  // Without activations and scratch. 0 of ops that run as parts of a kernel: how that uses memory does not
  // follow from its ops, and no peak is looked for there.
  uint64_t background = 0;
};

/// For the ops of `train`, from which program train_step of the plan was made; without those that no kernel
/// computes.
llvm::DenseMap<mlir::Operation *, LiveAt> liveAtOps(const MeasuredPlan &measured, mlir::func::FuncOp train);

/// "its peak is at ..., with ... bytes that live through the step; largest of the others: ..."
std::string describePeak(const MeasuredPlan &measured);

} // namespace ft::compiler
