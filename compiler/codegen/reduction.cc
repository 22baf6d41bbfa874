#include "compiler/codegen/reduction.h"

#include <limits>

#include "compiler/codegen/lane_vectors.h"
#include "mlir/IR/BuiltinTypes.h"

namespace ft::compiler {

Lanes identityOf(llvm::StringRef kind, Lanes like) {
  if (kind == "sum")
    return constant(like, 0);
  bool isMax = kind == "max";
  if (!isFloat(like))
    return bitsConstant(like,
                        isMax ? std::numeric_limits<int32_t>::min() : std::numeric_limits<int32_t>::max());
  double infinity = std::numeric_limits<double>::infinity();
  return constant(like, isMax ? -infinity : infinity);
}

Lanes combined(llvm::StringRef kind, Lanes a, Lanes b) {
  Elementwise op = kind == "sum"   ? Elementwise::kAdd
                   : kind == "max" ? Elementwise::kMaximum
                                   : Elementwise::kMinimum;
  return elementwiseValue(RowOf(op), {a, b}, {});
}

Lanes joined(llvm::StringRef kind, llvm::ArrayRef<Lanes> vectors) {
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
