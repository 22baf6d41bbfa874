// Parts of tensors.
#pragma once

#include "dialects/ft/verify.h"

namespace mlir::ft {

// Where in the operand a result of ft.split begins.
inline SmallVector<int64_t> beginOf(SplitOp split, unsigned part) {
  SmallVector<int64_t> begin(verify::shape(split.getX()).size(), 0);
  for (Value before : split.getResults().take_front(part))
    begin.back() += verify::shape(before).back();
  return begin;
}

} // namespace mlir::ft
