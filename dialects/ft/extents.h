// Which extents of a graph are one and the same: what changes with the batch, and what cannot.
#pragma once

#include <cstdint>

#include "mlir/IR/Value.h"

namespace mlir::ft {

// One dimension of a value, by number.
struct Dimension {
  Value value;
  int64_t dim = 0;
};

// What ops say of their extents.
class ExtentRelations {
public:
  virtual ~ExtentRelations() = default;

  // Both are one number.
  virtual void same(Dimension a, Dimension b) = 0;
  // `to` is `from` wherever that is not 1.
  virtual void follows(Dimension from, Dimension to) = 0;
  // Whether an extent of 1 may be one that changes.
  virtual bool onesMayChange() const = 0;
  // It stays what it is.
  virtual void fixed(Dimension dimension) = 0;
};

// Dimensions of `a` and `b` from the first on, `count` of them.
void alignLeading(Value a, Value b, int64_t count, ExtentRelations &relations);
// Operands whose shape ends that of the first result, or is it, are aligned with it.
void alignOperands(Operation *op, ExtentRelations &relations);

} // namespace mlir::ft
