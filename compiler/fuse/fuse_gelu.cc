// --ft-fuse-gelu
// Enters: programs whose ops all have their phase, and whose parameters are views of gathered units or still
// ft.get. Leaves: ft.matmul_gelu in place of an ft.matmul and the call of ft.gelu's body that runs next,
// ft.matmul_gelu_grad in place of a call of its derivative and the ft.matmul of the upstream gradient; tanh
// forms only. Nothing is refused; what does not match stays.
#include "compiler/fuse/passes.h"
#include "dialects/ft/composites.h"

namespace mlir::ft {

#define GEN_PASS_DEF_FUSEGELUPASS
#include "compiler/fuse/passes.h.inc"

namespace {

// The product of rows and a matrix that has this value, in the block and phase of its reader; or null.
MatmulOp productOf(Value value, Operation *reader) {
  auto product = value.getDefiningOp<MatmulOp>();
  if (!product || product.getAcc() || product.getTransposeA() || product.roundsToFloat8() ||
      product->getBlock() != reader->getBlock() || getPhase(product) != getPhase(reader))
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

// What the call is of GELU in the tanh form, where it is one.
std::optional<OriginKind> geluKind(CallOp call) {
  OriginAttr origin = originOf(calleeOf(call));
  if (!origin || origin.getOp() != GeluOp::getOperationName())
    return std::nullopt;
  auto form = origin.getProperties().getAs<StringAttr>("approximate");
  return form == "tanh" ? std::optional(origin.getKind()) : std::nullopt;
}

// Where the product stands: it reads its parameters there.
void fuse(MatmulOp product, CallOp gelu) {
  OpBuilder builder(product);
  Value result = gelu.getOutputs()[0];
  Type type = result.getType(), kept = product.getResult().hasOneUse() ? Type() : type;
  auto fused = MatmulGeluOp::create(builder, builder.getFusedLoc({product.getLoc(), gelu.getLoc()}), type,
                                    kept, product.getA(), product.getB(), product.getBias(),
                                    product.getTransposeB(), gelu.getCallee());
  takePlace(fused, product);
  result.replaceAllUsesWith(fused.getResult());
  gelu.erase();
  if (kept)
    product.getResult().replaceAllUsesWith(fused.getX());
  product.erase();
}

void fuseForward(CallOp gelu) {
  MatmulOp product = productOf(gelu.getInputs()[0], gelu);
  if (product && isNextKernel(product, gelu))
    fuse(product, gelu);
}

// Other kernels may run between product and gradient: the gradient takes the product's buffer as it is, and x
// is read earlier, not later. It has to be there by then.
void fuseBackward(CallOp grad) {
  Value x = grad.getInputs()[0];
  MatmulOp product = productOf(grad.getInputs()[1], grad);
  if (!product || product.getBias() || !product.getResult().hasOneUse())
    return;
  if (Operation *maker = x.getDefiningOp();
      maker && maker->getBlock() == product->getBlock() && !maker->isBeforeInBlock(product))
    return;
  OpBuilder builder(product);
  auto fused = MatmulGeluGradOp::create(builder, builder.getFusedLoc({product.getLoc(), grad.getLoc()}),
                                        grad.getResultTypes()[0], product.getA(), product.getB(), x,
                                        product.getTransposeB(), grad.getCallee());
  takePlace(fused, product);
  grad.getOutputs()[0].replaceAllUsesWith(fused.getDx());
  grad.erase();
  product.erase();
}

class FuseGeluPass : public impl::FuseGeluPassBase<FuseGeluPass> {
  void runOnOperation() override {
    SmallVector<std::pair<CallOp, OriginKind>> calls;
    for (func::FuncOp program : programsOf(getOperation()))
      for (auto call : program.getOps<CallOp>())
        if (auto kind = geluKind(call))
          calls.push_back({call, *kind});
    for (auto [call, kind] : calls)
      kind == OriginKind::body ? fuseForward(call) : fuseBackward(call);
  }
};

} // namespace
} // namespace mlir::ft
