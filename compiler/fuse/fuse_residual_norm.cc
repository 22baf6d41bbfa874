// --ft-fuse-residual-norm
// Enters: programs whose ops all have their phase, and whose parameters are views of gathered units or still
// ft.get. Leaves: ft.add_layer_norm and ft.add_rms_norm in place of a norm and of the ft.add before it that
// it is the first to read. Nothing is refused; what does not match stays.
#include "compiler/fuse/passes.h"
#include "dialects/ft/elementwise.h"

namespace mlir::ft {

#define GEN_PASS_DEF_FUSERESIDUALNORMPASS
#include "compiler/fuse/passes.h.inc"

namespace {

// From `add` to `norm` no kernel runs: what `add` reads then lives no longer for being read later, and
// neither does anything read the sum before it is there.
bool isNext(Operation *add, Operation *norm) {
  if (add->getBlock() != norm->getBlock())
    return false;
  for (Operation *between = add->getNextNode(); between != norm; between = between->getNextNode())
    if (isa<KernelOpInterface>(between) || llvm::is_contained(between->getOperands(), add->getResult(0)))
      return false;
  return true;
}

// A unit may be released, and its views with it, between the sum and the norm.
bool isView(Value value) { return isa_and_nonnull<ViewOp>(value.getDefiningOp()); }

// The sum that `norm` can take over, or null.
AddOp fusableSum(Operation *norm) {
  Value x = norm->getOperand(0);
  auto add = x.getDefiningOp<AddOp>();
  if (!add || add.getA().getType() != add.getType() || add.getB().getType() != add.getType() ||
      getPhase(add) != getPhase(norm) || !isNext(add, norm) || isView(add.getA()) || isView(add.getB()))
    return {};
  // A sum of one row could be the weight too.
  return llvm::is_contained(norm->getOperands().drop_front(), x) ? AddOp() : add;
}

Operation *createFused(OpBuilder &builder, Location loc, AddOp add, Operation *norm) {
  Type type = add.getType();
  if (auto layer = dyn_cast<LayerNormOp>(norm))
    return AddLayerNormOp::create(builder, loc, type, type, add.getA(), add.getB(), layer.getWeight(),
                                  layer.getBias(), layer.getEpsAttr());
  auto rms = cast<RmsNormOp>(norm);
  return AddRmsNormOp::create(builder, loc, type, type, add.getA(), add.getB(), rms.getWeight(),
                              rms.getEpsAttr());
}

// The parameters are those of the norm's layer, so that is the layer of both.
void fuse(AddOp add, Operation *norm) {
  OpBuilder builder(norm);
  Operation *fused = createFused(builder, builder.getFusedLoc({add.getLoc(), norm->getLoc()}), add, norm);
  fused->setDiscardableAttrs(norm->getDiscardableAttrDictionary());
  fused->removeDiscardableAttr(kRematAttr); // it was said of one of the two results
  add.getResult().replaceAllUsesWith(fused->getResult(0));
  norm->getResult(0).replaceAllUsesWith(fused->getResult(1));
  norm->erase();
  add.erase();
}

class FuseResidualNormPass : public impl::FuseResidualNormPassBase<FuseResidualNormPass> {
  void runOnOperation() override {
    SmallVector<Operation *> norms;
    getOperation().walk([&](Operation *op) {
      if (isa<LayerNormOp, RmsNormOp>(op))
        norms.push_back(op);
    });
    for (Operation *norm : norms)
      if (AddOp add = fusableSum(norm))
        fuse(add, norm);
  }
};

} // namespace
} // namespace mlir::ft
