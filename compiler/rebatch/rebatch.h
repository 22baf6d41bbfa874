// Another batch for a model that is written for one.
#pragma once

#include "mlir/IR/BuiltinOps.h"

#include <cstdint>

namespace ft::compiler {

/// Gives the forward function of a model that was checked `batch` examples: every extent that follows from
/// them, and means as means. Failed, with an error at the op that forbids it.
mlir::LogicalResult setBatch(mlir::ModuleOp module, int64_t batch);

} // namespace ft::compiler
