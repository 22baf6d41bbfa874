// --ft-fuse-linear-cross-entropy
// Enters: a graph before differentiation. Leaves: ft.linear_cross_entropy in place of ft.cross_entropy of an
// ft.matmul with `transpose_b`. Nothing is refused; what does not match stays.
#include "compiler/fuse/passes.h"

namespace mlir::ft {

#define GEN_PASS_DEF_FUSELINEARCROSSENTROPYPASS
#include "compiler/fuse/passes.h.inc"

namespace {

// The product whose result is nothing but these logits, or null.
MatmulOp fusableHead(CrossEntropyOp loss) {
  auto head = loss.getLogits().getDefiningOp<MatmulOp>();
  if (!head || !head.getTransposeB() || head.getTransposeA() || head.getBias() || head.getAcc())
    return {};
  return head.getResult().hasOneUse() ? head : MatmulOp();
}

void fuse(CrossEntropyOp loss, MatmulOp head) {
  OpBuilder builder(loss);
  auto fused =
      LinearCrossEntropyOp::create(builder, builder.getFusedLoc({head.getLoc(), loss.getLoc()}),
                                   loss.getLoss().getType(), head.getA(), head.getB(), loss.getTargets());
  fused->setDiscardableAttrs(head->getDiscardableAttrDictionary());
  for (NamedAttribute attribute : loss->getDiscardableAttrs())
    fused->setDiscardableAttr(attribute.getName(), attribute.getValue());
  loss.getLoss().replaceAllUsesWith(fused.getLoss());
  loss.erase();
  head.erase();
}

class FuseLinearCrossEntropyPass : public impl::FuseLinearCrossEntropyPassBase<FuseLinearCrossEntropyPass> {
  void runOnOperation() override {
    SmallVector<CrossEntropyOp> losses;
    getOperation().walk([&](CrossEntropyOp op) { losses.push_back(op); });
    for (CrossEntropyOp loss : losses)
      if (MatmulOp head = fusableHead(loss))
        fuse(loss, head);
  }
};

} // namespace
} // namespace mlir::ft
