// Parameters whose elements backward reads at other places.
#pragma once

#include "dialects/ft/dialect.h"
#include "mlir/IR/Block.h"

namespace mlir::ft {

// Forward transposes, cuts or reshapes a parameter, and backward reads the result: it moves the elements
// again then, just before it reads them, since the parameter is there anyway. What was moved would otherwise
// be kept as an activation of the size of the weight, whatever recomputation is asked for.
void moveParametersAgain(Block &block);

} // namespace mlir::ft
