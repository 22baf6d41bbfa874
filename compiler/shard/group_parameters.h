// Wrap policies: which parameters are gathered together.
#pragma once

#include "dialects/ft/dialect.h"

#include <string>
#include <vector>

namespace ft::compiler {

struct WrapPolicy {
  std::string wrap; // transformer, size, names, none
  llvm::ArrayRef<std::string> names;
  uint64_t minNumParams = 0;
  uint64_t persistenceThreshold = 0;
};

struct ParameterGroup {
  std::string name;
  bool frozen = false;
  bool small = false;                                  // stays gathered at rest
  std::string rule;                                    // of the optimizer, where it has more than one
  llvm::SmallVector<mlir::ft::ParameterOp> parameters; // in the order of the module; never empty
};

/// Groups the parameters of a module; every parameter is in one group, and no group holds frozen and trained
/// ones, or those that different rules update. Emits an error for an unknown policy, for a module without
/// parameters, and for a pattern that no layer matches.
llvm::FailureOr<std::vector<ParameterGroup>> groupParameters(mlir::ModuleOp module, const WrapPolicy &policy);

} // namespace ft::compiler
