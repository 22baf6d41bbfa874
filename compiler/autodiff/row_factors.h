// Factors of sums over rows that are the same along a row.
#pragma once

#include "dialects/ft/dialect.h"
#include "mlir/IR/Block.h"

namespace mlir::ft {

// sum(x f) becomes sum(x) f, for numbers f and for what there is one of for a row; over the last dimension.
// Derivatives have such products where a norm divides by what it has summed up: without the factor the sum
// does not wait for it, and a kernel walks a row once less. Rounding may differ by an ulp of f32.
void takeFactorsOutOfSums(Block &block);

} // namespace mlir::ft
