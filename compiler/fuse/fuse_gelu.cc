// --ft-fuse-gelu
// Enters: programs whose ops all have their phase, and whose parameters are views of gathered units or still
// ft.get. Leaves: ft.matmul_gelu in place of an ft.matmul and the ft.gelu that runs next, ft.matmul_gelu_grad
// in place of an ft.gelu_grad and the ft.matmul of its upstream gradient; tanh forms only. Nothing is
// refused; what does not match stays.
#include "compiler/fuse/passes.h"

namespace mlir::ft {

#define GEN_PASS_DEF_FUSEGELUPASS
#include "compiler/fuse/passes.h.inc"

namespace {

// The product of rows and a matrix that has this value, in the block and phase of its reader; or null.
MatmulOp productOf(Value value, Operation *reader) {
  auto product = value.getDefiningOp<MatmulOp>();
  if (!product || product.getAcc() || product.getTransposeA() || product->getBlock() != reader->getBlock() ||
      getPhase(product) != getPhase(reader))
    return {};
  return product;
}

// No kernel runs between them: the GELU's result lives no longer for being there with the product.
bool isNextKernel(Operation *product, Operation *gelu) {
  for (Operation *between = product->getNextNode(); between != gelu; between = between->getNextNode())
    if (isa<KernelOpInterface>(between))
      return false;
  return true;
}

// Everything but what recomputation said, which was of one of the two.
void takePlace(Operation *fused, Operation *product) {
  fused->setDiscardableAttrs(product->getDiscardableAttrDictionary());
  fused->removeDiscardableAttr(kRematAttr);
}

// Where the product stands: it reads its parameters there.
void fuse(MatmulOp product, GeluOp gelu) {
  OpBuilder builder(product);
  Type type = gelu.getType(), kept = product.getResult().hasOneUse() ? Type() : type;
  auto fused =
      MatmulGeluOp::create(builder, builder.getFusedLoc({product.getLoc(), gelu.getLoc()}), type, kept,
                           product.getA(), product.getB(), product.getBias(), product.getTransposeB());
  takePlace(fused, product);
  gelu.getResult().replaceAllUsesWith(fused.getResult());
  gelu.erase();
  if (kept)
    product.getResult().replaceAllUsesWith(fused.getX());
  product.erase();
}

void fuse(MatmulOp product, GeluGradOp grad) {
  OpBuilder builder(product);
  auto fused = MatmulGeluGradOp::create(builder, builder.getFusedLoc({product.getLoc(), grad.getLoc()}),
                                        grad.getType(), product.getA(), product.getB(), grad.getX(),
                                        product.getTransposeB());
  takePlace(fused, product);
  grad.getDx().replaceAllUsesWith(fused.getDx());
  grad.erase();
  product.erase();
}

void fuseForward(GeluOp gelu) {
  MatmulOp product = productOf(gelu.getX(), gelu);
  if (product && gelu.getApproximate() == "tanh" && isNextKernel(product, gelu))
    fuse(product, gelu);
}

// Other kernels may run between product and gradient: the gradient takes the product's buffer as it is, and x
// is read earlier, not later. It has to be there by then.
void fuseBackward(GeluGradOp grad) {
  MatmulOp product = productOf(grad.getDy(), grad);
  if (!product || product.getBias() || !product.getResult().hasOneUse() || grad.getApproximate() != "tanh")
    return;
  Operation *x = grad.getX().getDefiningOp();
  if (!x || x->getBlock() != product->getBlock() || x->isBeforeInBlock(product))
    fuse(product, grad);
}

class FuseGeluPass : public impl::FuseGeluPassBase<FuseGeluPass> {
  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (isa<GeluOp, GeluGradOp>(op))
        ops.push_back(op);
    });
    for (Operation *op : ops)
      if (auto gelu = dyn_cast<GeluOp>(op))
        fuseForward(gelu);
      else
        fuseBackward(cast<GeluGradOp>(op));
  }
};

} // namespace
} // namespace mlir::ft
