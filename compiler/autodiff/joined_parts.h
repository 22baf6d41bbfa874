// Gradients of what was cut into parts.
#pragma once

#include "dialects/ft/dialect.h"
#include "mlir/IR/Block.h"

namespace mlir::ft {

// The gradient of x, of which slices were taken, is a sum of theirs with zeros around them. Where these lie
// side by side the sum becomes ft.concat: parts are written where they belong, and no zero is added.
void joinParts(Block &block);

} // namespace mlir::ft
