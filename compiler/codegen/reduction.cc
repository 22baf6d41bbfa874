#include "compiler/codegen/reduction.h"

#include <limits>

#include "compiler/codegen/lane_vectors.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/TypeUtilities.h"

namespace ft::compiler {

ReductionKind reductionKindOf(llvm::StringRef name) {
  return name == "sum" ? ReductionKind::kSum : name == "max" ? ReductionKind::kMax : ReductionKind::kMin;
}

Lanes identityOf(ReductionKind kind, Lanes like) {
  if (kind == ReductionKind::kSum)
    return constant(like, 0);
  bool isMax = kind == ReductionKind::kMax;
  if (isFloat(like)) {
    double infinity = std::numeric_limits<double>::infinity();
    return constant(like, isMax ? -infinity : infinity);
  }
  bool isLong = mlir::getElementTypeOrSelf(like.type()).isInteger(64);
  int64_t least = isLong ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int32_t>::min();
  return bitsConstant(like, isMax ? least : -(least + 1));
}

Elementwise combiningOf(ReductionKind kind) {
  return kind == ReductionKind::kSum   ? Elementwise::kAdd
         : kind == ReductionKind::kMax ? Elementwise::kMaximum
                                       : Elementwise::kMinimum;
}

Lanes combined(ReductionKind kind, Lanes a, Lanes b) {
  return elementwiseValue(RowOf(combiningOf(kind)), {a, b}, {});
}

Lanes joined(ReductionKind kind, llvm::ArrayRef<Lanes> vectors) {
  llvm::SmallVector<Lanes> rest(vectors);
  while (rest.size() > 1) {
    for (size_t i = 0; i < rest.size() / 2; ++i)
      rest[i] = combined(kind, rest[2 * i], rest[2 * i + 1]);
    rest.resize(rest.size() / 2);
  }
  Lanes lanes = rest[0];
  while (llvm::isa<mlir::VectorType>(lanes.type()))
    lanes = combined(kind, lowerHalf(lanes), upperHalf(lanes));
  return lanes;
}

} // namespace ft::compiler
