// --ft-fuse-loss-grad
// Enters: a differentiated graph. Leaves: ft.linear_cross_entropy_loss_grad in place of
// ft.linear_cross_entropy and its gradient, where the upstream gradient is known before forward runs: a
// constant, or one times the loss scale. Nothing is refused; what does not match stays.
#include <optional>

#include "compiler/fuse/passes.h"
#include "dialects/ft/elementwise.h"

namespace mlir::ft {

#define GEN_PASS_DEF_FUSELOSSGRADPASS
#include "compiler/fuse/passes.h.inc"

namespace {

// An upstream gradient that does not depend on the forward pass.
struct Upstream {
  double factor;
  LossScaleOp scale; // times this, where it is not null
};

// Seen through ft.scale.
std::optional<Upstream> upstreamOf(Value value) {
  if (auto fill = value.getDefiningOp<FillOp>())
    return Upstream{fill.getValue().convertToDouble(), {}};
  if (auto lossScale = value.getDefiningOp<LossScaleOp>();
      lossScale && lossScale.getScaler().getDefiningOp<InputOp>())
    return Upstream{1.0, lossScale};
  auto scale = value.getDefiningOp<ScaleOp>();
  std::optional<Upstream> inner = scale ? upstreamOf(scale.getA()) : std::nullopt;
  if (inner)
    inner->factor *= scale.getParameter();
  return inner;
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

// The loss scale and its input come before `place`, of whose layer and phase they are then.
Value scaleAt(Operation *place, LossScaleOp scale) {
  if (!scale)
    return {};
  for (Operation *op : {scale.getScaler().getDefiningOp(), scale.getOperation()}) {
    if (op->isBeforeInBlock(place))
      continue;
    op->moveBefore(place);
    op->setDiscardableAttrs(place->getDiscardableAttrDictionary());
  }
  return scale.getResult();
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

void fuse(LinearCrossEntropyOp forward, LinearCrossEntropyGradOp grad, Operation *place,
          const Upstream &upstream) {
  OpBuilder builder(place);
  auto fused = LinearCrossEntropyLossGradOp::create(
      builder, place->getLoc(), forward.getLoss().getType(), grad.getDx().getType(),
      grad.getDweight().getType(), grad.getX(), grad.getWeight(), grad.getTargets(), grad.getAcc(),
      scaleAt(place, upstream.scale), builder.getF64FloatAttr(upstream.factor));
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
      std::optional<Upstream> upstream = upstreamOf(grad.getDloss());
      LinearCrossEntropyOp forward = forwardOf(grad);
      if (!upstream || !forward)
        continue;
      if (Operation *place = placeFor(forward, grad))
        fuse(forward, grad, place, *upstream);
    }
  }
};

} // namespace
} // namespace mlir::ft
