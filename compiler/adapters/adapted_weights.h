// Which weights of a model can have adapters, and which of them a user means.
#pragma once

#include "dialects/ft/dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <string>

namespace ft::compiler {

/// The weight of a module that multiplies, and the products that it is in.
struct AdaptedWeight {
  mlir::ft::ParameterOp parameter;
  std::string module; // "model.layers.0.self_attn.q_proj"
  llvm::SmallVector<mlir::ft::MatmulOp> products;
  int64_t in = 0, out = 0;
  bool isOutputFirst = false; // [out, in]
  bool isInside = true;       // neither the output layer nor a router
};

/// The module that a parameter is of: its name up to the last point.
llvm::StringRef moduleOf(llvm::StringRef parameter);

/// Whether a target means a module: its name, the end of it from a point on, or a glob of one of these.
bool meansModule(llvm::StringRef target, llvm::StringRef module);

/// Whether it means this module or one that it lies in.
bool meansModuleAround(llvm::StringRef target, llvm::StringRef module);

/// The weights that targets mean, in the order of the parameters. Emits an error for a target that means
/// none, or none that can have adapters, and says why.
mlir::FailureOr<std::vector<AdaptedWeight>> findAdaptedWeights(mlir::func::FuncOp forward,
                                                               llvm::ArrayRef<std::string> targets);

} // namespace ft::compiler
