// What backward reads at other places than where it lies.
#pragma once

#include "dialects/ft/dialect.h"
#include "mlir/IR/Block.h"

namespace mlir::ft {

// Forward transposes, cuts or reshapes a parameter, and backward reads the result: it moves the elements
// again then, just before it reads them, since the parameter is there anyway. What was moved would otherwise
// be kept as an activation of the size of the weight, whatever recomputation is asked for.
void moveParametersAgain(Block &block);

// Forward cuts an activation, and backward computes on parts that are together no smaller than the whole (or
// reads the whole, too): it cuts again. So the whole is kept where it was made, and not its parts beside it,
// which forward need not write then. Parts that kernels of other kinds read are kept.
void cutActivationsAgain(Block &block);

} // namespace mlir::ft
