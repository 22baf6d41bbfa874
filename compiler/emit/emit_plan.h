// From a scheduled module to a plan.
#pragma once

#include "dialects/ftx/dialect.h"
#include "runtime/plan/plan.pb.h"

#include <string>
#include <utility>
#include <vector>

namespace ft::compiler {

/// What a plan says about itself besides what stands in the module.
struct PlanInfo {
  std::string producer;                                 // "ftc 0.1.0"
  std::vector<std::pair<std::string, double>> settings; // of the optimizer, for reports
  std::vector<std::pair<std::string, std::string>> textSettings;
};

/// Fills `plan` from a module after the memory stage. The same module gives the same plan. Emits an error at
/// the op that has no counterpart in plan.proto.
llvm::LogicalResult emitPlan(mlir::ModuleOp module, const PlanInfo &info, proto::Plan &plan);

} // namespace ft::compiler
