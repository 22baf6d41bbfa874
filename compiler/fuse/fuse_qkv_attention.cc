// --ft-fuse-qkv-attention
// Enters: a graph before differentiation. Leaves: ft.qkv_attention in place of ft.attention of the three
// parts of an ft.split. Nothing is refused; what does not match stays.
#include "compiler/fuse/passes.h"

namespace mlir::ft {

#define GEN_PASS_DEF_FUSEQKVATTENTIONPASS
#include "compiler/fuse/passes.h.inc"

namespace {

// The split whose parts are q, k and v of `attention` and nothing else, or null.
SplitOp fusableSplit(AttentionOp attention) {
  auto split = attention.getQ().getDefiningOp<SplitOp>();
  if (!split ||
      ValueRange(split.getParts()) != ValueRange({attention.getQ(), attention.getK(), attention.getV()}))
    return {};
  return llvm::all_of(split.getParts(), [](Value part) { return part.hasOneUse(); }) ? split : SplitOp();
}

void fuse(AttentionOp attention, SplitOp split) {
  OpBuilder builder(attention);
  auto fused = QkvAttentionOp::create(
      builder, builder.getFusedLoc({split.getLoc(), attention.getLoc()}), attention.getOut().getType(),
      attention.getLse().getType(), split.getX(), attention.getLengths(), attention.getSegments(),
      attention.getRng(), attention.getHeadsAttr(), attention.getKvHeadsAttr(), attention.getCausalAttr(),
      attention.getWindowAttr(), attention.getScaleAttr(), attention.getSoftcapAttr(),
      attention.getAlibiAttr(), attention.getRateAttr(), attention.getStreamAttr());
  fused->setDiscardableAttrs(attention->getDiscardableAttrDictionary());
  attention.replaceAllUsesWith(fused);
  attention.erase();
  split.erase();
}

class FuseQkvAttentionPass : public impl::FuseQkvAttentionPassBase<FuseQkvAttentionPass> {
  void runOnOperation() override {
    SmallVector<AttentionOp> attentions;
    getOperation().walk([&](AttentionOp op) { attentions.push_back(op); });
    for (AttentionOp attention : attentions)
      if (SplitOp split = fusableSplit(attention))
        fuse(attention, split);
  }
};

} // namespace
} // namespace mlir::ft
