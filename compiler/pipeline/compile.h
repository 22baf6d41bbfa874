// From a model to a plan: the one place that knows the order of the stages.
#pragma once

#include "compiler/pipeline/stages.h"
#include "runtime/plan/plan.pb.h"

#include "absl/status/statusor.h"

#include <functional>
#include <string>

namespace ft::compiler {

/// Called after each stage with its name, its number from 0 and the module that it left.
using StageObserver = std::function<absl::Status(const Stage &stage, int number, mlir::ModuleOp module)>;

/// Compiles the model in the file `path`. Errors: NotFound and the like when it cannot be read (exit status
/// 74); InvalidArgument, "model.mlir:12:5: error: ...", when it is no model that can be trained; what the
/// observer returns.
absl::StatusOr<proto::Plan> compileModel(const std::string &path, const CompileOptions &options,
                                         const StageObserver &observe);

/// What a search over plans of a model has to know ahead.
struct ModelOutline {
  int64_t batch = 0;
  // Equal ones of consecutive layers, of which options.keptBlocks leaves fewer; 0: none repeat.
  int64_t blocks = 0;
  std::string batchKeeper; // the error of the op that forbids another batch; empty: none does
};

/// Errors: those of compileModel for a file that is no model.
absl::StatusOr<ModelOutline> outlineModel(const std::string &path, const CompileOptions &options);

} // namespace ft::compiler
