// --ft-autodiff
// Enters: @forward(tokens, targets) -> loss, one block, ops with `layer`. Leaves: @train_step with the
// gradient ops appended and one ft.gradient per trained parameter. Refused: no @forward, a loss that is not
// one f32 scalar, an op without a derivative between a trained parameter and the loss.
#include "compiler/autodiff/composite_gradients.h"
#include "compiler/autodiff/joined_parts.h"
#include "compiler/autodiff/moves_again.h"
#include "compiler/autodiff/passes.h"
#include "compiler/autodiff/reverse_mode.h"
#include "dialects/ft/elementwise.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::ft {

#define GEN_PASS_DEF_AUTODIFFPASS
#include "compiler/autodiff/passes.h.inc"

namespace {

// Marks every op that it sees inserted with the backward phase and the layer of the op being differentiated.
class BackwardMarker : public OpBuilder::Listener {
public:
  void setLayer(StringAttr newLayer) { layer = newLayer; }
  void notifyOperationInserted(Operation *op, OpBuilder::InsertPoint previous) override {
    setPhase(op, kPhaseBackward);
    ft::setLayer(op, layer);
  }

private:
  StringAttr layer;
};

// Where backward begins: the gradient of the loss is `factor`, times the loss scale, over the number of
// ranks.
struct Seed {
  double factor;
  bool scaled, averaged;
};

// Differentiates the loss with respect to trained parameters, and declares what their gradients are.
class StepGradients : ReverseMode::Observer {
public:
  StepGradients(ModuleOp module, Block &block, Value loss, Seed seed)
      : module(module), loss(loss), wanted(seed), composites(module),
        reverse(block, trainedValues(module, block), loss, composites) {
    reverse.ops().setListener(&marker);
  }

  LogicalResult run() {
    if (reverse.activity().isActive(loss))
      reverse.seed(loss, makeSeed());
    if (failed(reverse.run(*this)))
      return failure();
    declareUnused();
    joinParts(*reverse.ops().getInsertionBlock());
    moveParametersAgain(*reverse.ops().getInsertionBlock());
    cutActivationsAgain(*reverse.ops().getInsertionBlock());
    eraseDead();
    return success();
  }

private:
  Value makeSeed() {
    OpBuilder &builder = reverse.ops();
    marker.setLayer(getLayer(loss.getDefiningOp()));
    Location loc = loss.getLoc();
    Value inverse;
    if (wanted.averaged)
      inverse = InputOp::create(builder, loc, loss.getType(), kInverseRanksInput);
    FloatAttr factor = builder.getF64FloatAttr(wanted.factor);
    if (wanted.scaled) {
      auto state = RankedTensorType::get({kScalerNumbers}, builder.getF32Type());
      Value scaler = InputOp::create(builder, loc, state, kScalerInput);
      Value scale = LossScaleOp::create(builder, loc, loss.getType(), scaler, factor);
      return inverse ? MulOp::create(builder, loc, ValueRange{scale, inverse}).getResult() : scale;
    }
    if (!inverse)
      return FillOp::create(builder, loc, loss.getType(), factor);
    return wanted.factor == 1 ? inverse : ScaleOp::create(builder, loc, ValueRange{inverse}, wanted.factor);
  }

  void enter(Operation *op) override { marker.setLayer(getLayer(op)); }

  // ft.gradient for parameters that got their last contribution from `op`.
  void leave(Operation *op) override {
    llvm::SmallDenseSet<StringRef> seen;
    for (Value operand : op->getOperands()) {
      auto get = operand.getDefiningOp<GetOp>();
      if (!get || reverse.activity().finalContributor(get.getParameter()) != op)
        continue;
      if (seen.insert(get.getParameter()).second)
        GradientOp::create(reverse.ops(), get.getLoc(), get.getParameterAttr(), reverse.gradientOf(operand));
    }
  }

  void declareUnused() {
    OpBuilder &builder = reverse.ops();
    for (auto parameter : module.getOps<ParameterOp>()) {
      if (parameter.getFrozen() || reverse.activity().finalContributor(parameter.getSymName()))
        continue;
      marker.setLayer(parameter.getLayerAttr());
      Value zero = FillOp::create(builder, parameter.getLoc(), parameter.getTypeAttr().getValue(),
                                  builder.getF64FloatAttr(0.0));
      GradientOp::create(builder, parameter.getLoc(), FlatSymbolRefAttr::get(parameter.getSymNameAttr()),
                         zero);
    }
  }

  // What ended at a power of 0, whose gradient is 0.
  void eraseDead() {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*reverse.ops().getInsertionBlock())))
      if (isInPhase(&op, kPhaseBackward) && isOpTriviallyDead(&op))
        op.erase();
  }

  ModuleOp module;
  Value loss;
  Seed wanted;
  CompositeGradients composites;
  BackwardMarker marker;
  ReverseMode reverse;
};

FailureOr<func::FuncOp> findForward(ModuleOp module) {
  if (auto done = module.lookupSymbol<func::FuncOp>(kTrainStepFunction)) {
    done.emitError("is here already: a module is differentiated once");
    return failure();
  }
  auto forward = module.lookupSymbol<func::FuncOp>(kForwardFunction);
  if (!forward) {
    module.emitError("there is no function @forward to differentiate");
    return failure();
  }
  if (!llvm::hasSingleElement(forward.getBody())) {
    forward.emitError("must have a body of one block: a training step has no control flow");
    return failure();
  }
  auto isLoss = [](Type type) {
    return type == RankedTensorType::get({}, Float32Type::get(type.getContext()));
  };
  if (forward.getNumResults() != 1 || !isLoss(forward.getResultTypes()[0])) {
    forward.emitError("must return the loss, one tensor<f32>");
    return failure();
  }
  return forward;
}

class AutodiffPass : public impl::AutodiffPassBase<AutodiffPass> {
public:
  using AutodiffPassBase::AutodiffPassBase;

private:
  void runOnOperation() override {
    FailureOr<func::FuncOp> forward = findForward(getOperation());
    if (failed(forward))
      return signalPassFailure();
    Block &block = forward->getBody().front();
    for (Operation &op : block.without_terminator())
      setPhase(&op, kPhaseForward);

    StepGradients gradients(getOperation(), block, block.getTerminator()->getOperand(0),
                            {gradientFactor, lossScale, mean});
    if (failed(gradients.run()))
      return signalPassFailure();
    forward->setSymName(kTrainStepFunction);
  }
};

} // namespace
} // namespace mlir::ft
