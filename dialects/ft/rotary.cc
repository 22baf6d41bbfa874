// What ft.rope is short for.
#include "dialects/ft/verify.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::ft {
namespace {

// Tables stand at the beginning of a function, in the layer that comes first: no other has a better claim.
RotaryTableOp tableOf(RopeOp op, RankedTensorType type) {
  Block &block = op->getParentOfType<func::FuncOp>().front();
  for (Operation &other : block) {
    auto table = dyn_cast<RotaryTableOp>(other);
    if (!table)
      break;
    if (table.getCosine().getType() == type && table.getBaseAttr() == op.getBaseAttr() &&
        !table.getScaleAttr())
      return table;
  }
  OpBuilder builder = OpBuilder::atBlockBegin(&block);
  auto table = RotaryTableOp::create(builder, op.getLoc(), type, type, op.getBaseAttr(),
                                     /*frequencies=*/DenseF64ArrayAttr(), /*scale=*/FloatAttr());
  auto first = llvm::find_if(block, [](Operation &other) { return getLayer(&other) != nullptr; });
  if (first != block.end())
    setLayer(table, getLayer(&*first));
  return table;
}

} // namespace

SmallVector<Value> RopeOp::expand(OpBuilder &builder) {
  ArrayRef<int64_t> dims = verify::shape(getX());
  auto type = RankedTensorType::get({dims[1], dims[2] / int64_t(getHeads()) / 2}, builder.getF32Type());
  RotaryTableOp table = tableOf(*this, type);
  return {RotateOp::create(builder, getLoc(), getType(), getX(), table.getCosine(), table.getSine(),
                           getHeadsAttr(), getInverseAttr())};
}

} // namespace mlir::ft
