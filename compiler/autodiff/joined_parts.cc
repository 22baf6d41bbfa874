#include "compiler/autodiff/joined_parts.h"

#include "dialects/ft/elementwise.h"
#include "dialects/ft/verify.h"

namespace mlir::ft {
namespace {

using verify::shape;

// The dimension along which `second` begins where `first` ends; in all others they are the same.
std::optional<int64_t> sideBySide(PadOp first, PadOp second) {
  std::optional<int64_t> axis;
  for (auto [i, low] : llvm::enumerate(first.getLow())) {
    int64_t next = second.getLow()[i], extent = shape(first.getX())[i];
    if (low == next && extent == shape(second.getX())[i])
      continue;
    if (axis || low + extent != next)
      return std::nullopt;
    axis = i;
  }
  return axis;
}

Value joined(OpBuilder &builder, AddOp sum, PadOp first, PadOp second, int64_t axis) {
  SmallVector<int64_t> dims(shape(first.getX()));
  dims[axis] += shape(second.getX())[axis];
  auto type = verify::tensor(sum).clone(dims);
  auto concat = ConcatOp::create(builder, sum.getLoc(), type, ValueRange{first.getX(), second.getX()},
                                 builder.getI64IntegerAttr(axis));
  concat->setDiscardableAttrs(sum->getDiscardableAttrDictionary());
  if (type == sum.getType())
    return concat;
  auto rest = PadOp::create(builder, sum.getLoc(), sum.getType(), concat, first.getLowAttr());
  rest->setDiscardableAttrs(sum->getDiscardableAttrDictionary());
  return rest;
}

} // namespace

void joinParts(Block &block) {
  for (AddOp sum : llvm::make_early_inc_range(block.getOps<AddOp>())) {
    auto a = sum->getOperand(0).getDefiningOp<PadOp>(), b = sum->getOperand(1).getDefiningOp<PadOp>();
    if (!a || !b || a.getType() != sum.getType() || b.getType() != sum.getType())
      continue;
    for (auto [first, second] : {std::pair(a, b), std::pair(b, a)})
      if (std::optional<int64_t> axis = sideBySide(first, second)) {
        OpBuilder builder(sum);
        sum->getResult(0).replaceAllUsesWith(joined(builder, sum, first, second, *axis));
        sum->erase();
        break;
      }
  }
}

} // namespace mlir::ft
