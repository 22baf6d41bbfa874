// Passes and dialects of this project, as the build collected them.
#pragma once

#include "mlir/IR/DialectRegistry.h"

namespace ft_opt {

void registerOurDialects(mlir::DialectRegistry& registry);
void registerOurPasses();

}  // namespace ft_opt
