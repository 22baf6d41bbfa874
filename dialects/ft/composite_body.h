// What bodies of composites (composite_ops.td) are made with: ops at one place.
#pragma once

#include "dialects/ft/elementwise.h"
#include "dialects/ft/verify.h"

namespace mlir::ft {

class CompositeBody {
public:
  CompositeBody(OpBuilder &builder, Location loc) : builder(builder), loc(loc) {}

  template <typename ConcreteOp> Value map(ValueRange operands, ArrayRef<double> parameters = {}) {
    return ConcreteOp::create(builder, loc, operands, parameters);
  }
  // f32, of no dimensions.
  Value constant(double number);
  Value reshape(Value x, ArrayRef<int64_t> dims);
  Value broadcast(Value x, ArrayRef<int64_t> dims);
  Value slice(Value x, ArrayRef<int64_t> begin, ArrayRef<int64_t> dims);
  Value concat(ValueRange parts, int64_t axis);

  // Over the last dimension; `kind` is that of ft.reduce.
  Value reduced(StringRef kind, Value x);
  Value mean(Value x);
  // Scalars.
  Value sumOfAll(Value x);
  Value meanOfAll(Value x);
  // The numbers of the columns of `like`, in i32.
  Value columnsOf(Value like);
  // What there is one of for a row, for each element of the rows of `like`.
  Value spread(Value ofRow, Value like);
  Value ofRow(StringRef kind, Value x) { return spread(reduced(kind, x), x); }

  // 1 / sqrt(the mean of the squares of a row + eps)
  Value inverseRootMeanSquare(Value x, const llvm::APFloat &eps);
  Value rmsNorm(Value x, Value weight, const llvm::APFloat &eps);

  // In [0, 1), of 24 bits, for each element of `like`, which is f32.
  Value uniform(Value rng, int64_t stream, Value like);

private:
  OpBuilder &builder;
  Location loc;
};

} // namespace mlir::ft
