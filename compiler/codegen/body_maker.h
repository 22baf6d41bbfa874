// The values of a cluster body, as they become known.
#pragma once

#include "compiler/codegen/reduction.h"
#include "mlir/IR/Operation.h"
#include "runtime/base/cluster.h"

namespace ft::compiler {

/// Reads come before ops, and are known after them: values have provisional numbers until the body is taken.
class BodyMaker {
public:
  ClusterBody body;

  /// The body is whole. One row is cut into rows of 64 where that changes nothing else.
  ClusterBody take();

  uint32_t read(uint32_t input, ClusterBody::Place place);
  uint32_t fill(double number, DType dtype);
  uint32_t iota(int64_t elements, ClusterBody::Place place);
  uint32_t randomBits(uint32_t state, uint32_t draw, int64_t elements, ClusterBody::Place place);
  uint32_t convertedTo(DType dtype, uint32_t x);
  /// What `op`, which is elementwise or a conversion, makes of these.
  uint32_t computed(mlir::Operation *op, llvm::ArrayRef<uint32_t> operands);
  /// Of columns that are those of several values, one after the other, each of 64 columns if they are
  /// several. Sums of floats are in f32, rounded to the type of the result.
  uint32_t reduced(ReductionKind kind, llvm::ArrayRef<uint32_t> pieces, DType dtype);

private:
  uint32_t add(ClusterBody::Op op);
  DType dtypeOf(uint32_t number) const;
};

} // namespace ft::compiler
