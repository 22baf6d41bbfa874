// Sums over the batch, which grow with it where means do not.
#pragma once

#include "compiler/rebatch/batch_extents.h"

namespace ft::compiler {

/// Multiplies what is made of sums over the batch, so that with another batch the function's results are what
/// they were: means stay means. A number that a sum is multiplied by is multiplied; where there is none, the
/// result is. Failed, with an error at the op, where a sum goes into what does not grow evenly with it.
mlir::LogicalResult keepMeans(mlir::func::FuncOp function, const BatchExtents &extents, int64_t oldBatch,
                              int64_t newBatch);

} // namespace ft::compiler
