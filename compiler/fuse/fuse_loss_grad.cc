// --ft-fuse-loss-grad
// Enters: a differentiated graph. Leaves: ft.linear_cross_entropy_loss_grad in place of
// ft.linear_cross_entropy and its gradient, where the upstream gradient is constant. Nothing is refused; what
// does not match stays.
#include <optional>

#include "compiler/fuse/passes.h"

namespace mlir::ft {

#define GEN_PASS_DEF_FUSELOSSGRADPASS
#include "compiler/fuse/passes.h.inc"

namespace {

// The value of a constant scalar, seen through ft.scale.
std::optional<double> constantValue(Value value) {
  if (auto fill = value.getDefiningOp<FillOp>())
    return fill.getValue().convertToDouble();
  auto scale = value.getDefiningOp<ScaleOp>();
  if (!scale)
    return std::nullopt;
  std::optional<double> inner = constantValue(scale.getX());
  if (!inner)
    return std::nullopt;
  return *inner * scale.getFactor().convertToDouble();
}

// The forward op of `grad` in its block, or null.
LinearCrossEntropyOp forwardOf(LinearCrossEntropyGradOp grad) {
  for (Operation *user : grad.getX().getUsers()) {
    auto forward = dyn_cast<LinearCrossEntropyOp>(user);
    if (forward && forward->getBlock() == grad->getBlock() && forward->isBeforeInBlock(grad) &&
        forward.getX() == grad.getX() && forward.getWeight() == grad.getWeight() &&
        forward.getTargets() == grad.getTargets())
      return forward;
  }
  return {};
}

// Where both ops can be computed at once, or null.
Operation *placeFor(LinearCrossEntropyOp forward, LinearCrossEntropyGradOp grad) {
  Operation *acc = grad.getAcc() ? grad.getAcc().getDefiningOp() : nullptr;
  if (!acc || acc->isBeforeInBlock(forward))
    return forward;
  bool lossIsUsedLater = llvm::all_of(forward.getLoss().getUsers(), [&](Operation *user) {
    Operation *inBlock = grad->getBlock()->findAncestorOpInBlock(*user);
    return inBlock && grad->isBeforeInBlock(inBlock);
  });
  return lossIsUsedLater ? grad.getOperation() : nullptr;
}

void eraseIfDead(Value constant) {
  Operation *op = constant.getDefiningOp();
  if (!op->use_empty())
    return;
  Value inner = op->getNumOperands() == 1 ? op->getOperand(0) : Value();
  op->erase();
  if (inner)
    eraseIfDead(inner);
}

void fuse(LinearCrossEntropyOp forward, LinearCrossEntropyGradOp grad, Operation *place, double dloss) {
  OpBuilder builder(place);
  auto fused = LinearCrossEntropyLossGradOp::create(builder, place->getLoc(), forward.getLoss().getType(),
                                                    grad.getDx().getType(), grad.getDweight().getType(),
                                                    grad.getX(), grad.getWeight(), grad.getTargets(),
                                                    grad.getAcc(), builder.getF64FloatAttr(dloss));
  fused->setDiscardableAttrs(place->getDiscardableAttrDictionary());
  forward.getLoss().replaceAllUsesWith(fused.getLoss());
  grad.getDx().replaceAllUsesWith(fused.getDx());
  grad.getDweight().replaceAllUsesWith(fused.getDweight());
  Value constant = grad.getDloss();
  grad.erase();
  forward.erase();
  eraseIfDead(constant);
}

class FuseLossGradPass : public impl::FuseLossGradPassBase<FuseLossGradPass> {
  void runOnOperation() override {
    SmallVector<LinearCrossEntropyGradOp> grads;
    getOperation().walk([&](LinearCrossEntropyGradOp op) { grads.push_back(op); });
    for (LinearCrossEntropyGradOp grad : grads) {
      std::optional<double> dloss = constantValue(grad.getDloss());
      LinearCrossEntropyOp forward = forwardOf(grad);
      if (!dloss || !forward)
        continue;
      if (Operation *place = placeFor(forward, grad))
        fuse(forward, grad, place, *dloss);
    }
  }
};

} // namespace
} // namespace mlir::ft
