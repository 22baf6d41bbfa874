// --ft-fuse-bias-grad
// Enters: programs whose clusters are formed. Leaves: ft.matmul_bias_grad in place of an ft.matmul with
// transpose_a and the cluster that sums one of its operands over rows, and does nothing else. Nothing is
// refused; what does not match stays.
#include "compiler/fuse/passes.h"
#include "dialects/ft/clusters.h"
#include "dialects/ft/composites.h"

namespace mlir::ft {

#define GEN_PASS_DEF_FUSEBIASGRADPASS
#include "compiler/fuse/passes.h.inc"

namespace {

// Of 16 bits: libraries have no such epilogue for f32.
bool mayJoin(MatmulOp product, ClusterOp sum) {
  auto elementOf = [](Value value) { return cast<RankedTensorType>(value.getType()).getElementType(); };
  Value sums = sum.getOutputs()[0];
  return product && elementOf(product.getA()).getIntOrFloatBitWidth() == 16 && product.getTransposeA() &&
         !product.getAcc() && !product.getBias() && !product.roundsToFloat8() &&
         product->getBlock() == sum->getBlock() && getPhase(product) == getPhase(sum) &&
         elementOf(product.getResult()) == elementOf(sums) &&
         llvm::none_of(sums.getUsers(), [&](Operation *user) { return user->isBeforeInBlock(product); });
}

// The first product that it may join.
MatmulOp productFor(ClusterOp sum) {
  MatmulOp first;
  for (Operation *user : sum.getInputs()[0].getUsers()) {
    auto product = dyn_cast<MatmulOp>(user);
    if (mayJoin(product, sum) && (!first || product->isBeforeInBlock(first)))
      first = product;
  }
  return first;
}

void fuse(ClusterOp sum) {
  MatmulOp product = productFor(sum);
  if (!product)
    return;
  OpBuilder builder(product);
  auto fused = MatmulBiasGradOp::create(
      builder, builder.getFusedLoc({product.getLoc(), sum.getLoc()}), product.getResult().getType(),
      sum.getOutputs()[0].getType(), product.getA(), product.getB(), /*transpose_a=*/true,
      /*of_a=*/product.getB() != sum.getInputs()[0], sum.getBody(), sum.getPartialBytes());
  fused->setDiscardableAttrs(product->getDiscardableAttrDictionary());
  product.getResult().replaceAllUsesWith(fused.getResult());
  sum.getOutputs()[0].replaceAllUsesWith(fused.getSums());
  product.erase();
  sum.erase();
}

struct FuseBiasGradPass : impl::FuseBiasGradPassBase<FuseBiasGradPass> {
  void runOnOperation() override {
    llvm::DenseMap<func::FuncOp, bool> known;
    for (func::FuncOp program : programsOf(getOperation()))
      for (ClusterOp cluster : llvm::make_early_inc_range(program.getOps<ClusterOp>())) {
        func::FuncOp body = bodyOf(cluster);
        auto [found, isNew] = known.try_emplace(body);
        if (isNew)
          found->second = sumsRows(body);
        if (found->second)
          fuse(cluster);
      }
  }
};

} // namespace
} // namespace mlir::ft
