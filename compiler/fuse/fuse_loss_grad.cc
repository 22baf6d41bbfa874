// --ft-fuse-loss-grad
// Enters: a differentiated graph. Leaves: ft.linear_cross_entropy_loss_grad in place of
// ft.linear_cross_entropy and its gradient, where the upstream gradient is known before forward runs: a
// constant, times the loss scale, 1 / the ranks, what the loss weighs. Nothing is refused; what does not
// match stays.
#include "compiler/fuse/passes.h"
#include "dialects/ft/elementwise.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::ft {

#define GEN_PASS_DEF_FUSELOSSGRADPASS
#include "compiler/fuse/passes.h.inc"

namespace {

// An upstream gradient: a number, times a scalar where there is one.
struct Upstream {
  double factor;
  Value scale;
};

// Seen through ft.scale and products with a number.
Upstream upstreamOf(Value value) {
  if (auto fill = value.getDefiningOp<FillOp>())
    return {fill.getValue().convertToDouble(), {}};
  if (auto scale = value.getDefiningOp<ScaleOp>()) {
    Upstream inner = upstreamOf(scale.getA());
    return {inner.factor * scale.getParameter(), inner.scale};
  }
  auto product = value.getDefiningOp<MulOp>();
  for (unsigned number : {0, 1})
    if (auto fill = product ? product->getOperand(number).getDefiningOp<FillOp>() : FillOp())
      return {fill.getValue().convertToDouble(), product->getOperand(1 - number)};
  return {1.0, value};
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

// What `scale` is made of and is not before `place`, operands first. False when it cannot be there.
bool collectLate(Value scale, Operation *place, llvm::SetVector<Operation *> &late) {
  Operation *op = scale.getDefiningOp();
  if (!op || op->isBeforeInBlock(place))
    return true;
  if (op == place || !(isa<InputOp>(op) || isPure(op)))
    return false;
  for (Value operand : op->getOperands())
    if (!collectLate(operand, place, late))
      return false;
  late.insert(op);
  return true;
}

// They come before `place`, of whose layer and phase they are then.
void moveBefore(Operation *place, const llvm::SetVector<Operation *> &late) {
  for (Operation *op : late) {
    op->moveBefore(place);
    setLayer(op, getLayer(place));
    StringAttr phase = getPhase(place);
    setPhase(op, phase ? phase.getValue() : StringRef());
  }
}

void eraseIfDead(Value constant) {
  Operation *op = constant.getDefiningOp();
  if (!op || !isOpTriviallyDead(op))
    return;
  SmallVector<Value> operands(op->getOperands());
  op->erase();
  for (Value operand : operands)
    eraseIfDead(operand);
}

void fuse(LinearCrossEntropyOp forward, LinearCrossEntropyGradOp grad, Operation *place,
          const Upstream &upstream) {
  OpBuilder builder(place);
  auto fused = LinearCrossEntropyLossGradOp::create(
      builder, place->getLoc(), forward.getLoss().getType(), grad.getDx().getType(),
      grad.getDweight().getType(), grad.getX(), grad.getWeight(), grad.getTargets(), grad.getAcc(),
      upstream.scale, builder.getF64FloatAttr(upstream.factor));
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
      Upstream upstream = upstreamOf(grad.getDloss());
      LinearCrossEntropyOp forward = forwardOf(grad);
      Operation *place = forward ? placeFor(forward, grad) : nullptr;
      llvm::SetVector<Operation *> late;
      if (!place || (upstream.scale && !collectLate(upstream.scale, place, late)))
        continue;
      moveBefore(place, late);
      fuse(forward, grad, place, upstream);
    }
  }
};

} // namespace
} // namespace mlir::ft
