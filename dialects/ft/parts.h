// Parts of tensors.
#pragma once

#include "dialects/ft/dialect.h"

namespace mlir::ft {

// Where in the operand a result of ft.split begins.
inline SmallVector<int64_t> beginOf(SplitOp split, unsigned part) {
  SmallVector<int64_t> begin(cast<RankedTensorType>(split.getX().getType()).getRank(), 0);
  for (Value before : split.getResults().take_front(part))
    begin.back() += cast<RankedTensorType>(before.getType()).getShape().back();
  return begin;
}

} // namespace mlir::ft
