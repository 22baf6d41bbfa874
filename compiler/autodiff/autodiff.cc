// --ft-autodiff
// Enters: @forward(tokens, targets) -> loss, one block, ops with `layer`. Leaves: @train_step with the
// gradient ops appended and one ft.gradient per trained parameter. Refused: no @forward, a loss that is not
// one f32 scalar, an op without a derivative between a trained parameter and the loss.
#include "compiler/autodiff/activity.h"
#include "compiler/autodiff/passes.h"
#include "dialects/ft/elementwise.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
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

// Gradients found so far. All ft.get of one parameter share an entry.
class GradientTable {
public:
  Value lookup(Value value) const { return gradients.lookup(representative(value)); }
  void set(Value value, Value gradient) { gradients[representative(value)] = gradient; }
  bool same(Value a, Value b) const { return representative(a) == representative(b); }

  // Must be told of every ft.get before anything else.
  void addParameterValue(GetOp get) {
    Value first = firstGets.try_emplace(get.getParameter(), get.getValue()).first->second;
    if (first != get.getValue())
      representatives[get.getValue()] = first;
  }

private:
  Value representative(Value value) const {
    auto it = representatives.find(value);
    return it == representatives.end() ? value : it->second;
  }

  llvm::DenseMap<Value, Value> gradients;
  llvm::DenseMap<StringRef, Value> firstGets;
  llvm::DenseMap<Value, Value> representatives;
};

// Where backward begins: the gradient of the loss is `factor`, times the loss scale.
struct Seed {
  double factor;
  bool scaled;
};

// Differentiates one block.
class ReverseMode {
public:
  ReverseMode(ModuleOp module, Block &block, Value loss, Seed seed)
      : module(module), loss(loss), seed(seed), activity(module, block, loss),
        builder(OpBuilder::atBlockTerminator(&block)) {
    for (Operation &op : block.without_terminator()) {
      forwardOps.push_back(&op);
      if (auto get = dyn_cast<GetOp>(op))
        gradients.addParameterValue(get);
    }
    builder.setListener(&marker);
  }

  LogicalResult run() {
    if (activity.isActive(loss))
      gradients.set(loss, makeSeed());
    for (Operation *op : llvm::reverse(forwardOps)) {
      if (!activity.isActive(op))
        continue;
      marker.setLayer(getLayer(op));
      if (failed(differentiate(op)))
        return failure();
      declareFinished(op);
    }
    declareUnused();
    eraseDead();
    return success();
  }

private:
  Value makeSeed() {
    marker.setLayer(getLayer(loss.getDefiningOp()));
    FloatAttr factor = builder.getF64FloatAttr(seed.factor);
    if (!seed.scaled)
      return FillOp::create(builder, loss.getLoc(), loss.getType(), factor);
    auto state = RankedTensorType::get({kScalerNumbers}, builder.getF32Type());
    Value scaler = InputOp::create(builder, loss.getLoc(), state, kScalerInput);
    return LossScaleOp::create(builder, loss.getLoc(), loss.getType(), scaler, factor);
  }

  LogicalResult differentiate(Operation *op) {
    auto rule = dyn_cast<DifferentiableOpInterface>(op);
    if (!rule)
      return op->emitError()
             << "'" << op->getName()
             << "' has no derivative but lies between a trained parameter and the loss: freeze the "
                "parameter or use an op with a derivative";
    SmallVector<Value> resultGrads =
        llvm::map_to_vector(op->getResults(), [&](Value r) { return gradients.lookup(r); });
    SmallVector<bool> needed, accumulated(op->getNumOperands(), false);
    for (Value operand : op->getOperands())
      needed.push_back(activity.isActive(operand));
    SmallVector<Value> contributions = rule.buildGradient(
        builder, resultGrads, needed, accumulatorsFor(op, needed, resultGrads), accumulated);
    if (contributions.size() != op->getNumOperands())
      return failure(); // the rule has said why
    for (unsigned i = 0; i < op->getNumOperands(); ++i)
      if (needed[i] && failed(accumulate(op, i, contributions[i], accumulated[i])))
        return failure();
    return success();
  }

  // The sums that the rule may continue, each in the buffer of the sum so far. Hence none where the op's
  // upstream gradient is itself that sum (x + f(x): it is still to be read), and a value that is an operand
  // twice offers its sum to the first only, or the two continuations would each miss the other's part.
  SmallVector<Value> accumulatorsFor(Operation *op, ArrayRef<bool> needed,
                                     ArrayRef<Value> resultGrads) const {
    SmallVector<Value> sums;
    for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
      Value sum = needed[i] ? gradients.lookup(operand) : Value();
      for (Value earlier : op->getOperands().take_front(i))
        if (gradients.same(earlier, operand))
          sum = Value();
      sums.push_back(llvm::is_contained(resultGrads, sum) ? Value() : sum);
    }
    return sums;
  }

  LogicalResult accumulate(Operation *op, unsigned index, Value contribution, bool isWholeSum) {
    Value operand = op->getOperand(index);
    if (!contribution || contribution.getType() != operand.getType())
      return op->emitError() << "the derivative of '" << op->getName() << "' gives no gradient of type "
                             << operand.getType() << " for operand " << index
                             << ", which depends on a trained parameter";
    Value earlier = gradients.lookup(operand);
    if (earlier && !isWholeSum)
      contribution =
          AddOp::create(builder, op->getLoc(), operand.getType(), ValueRange{earlier, contribution});
    gradients.set(operand, contribution);
    return success();
  }

  // ft.gradient for parameters that got their last contribution from `op`.
  void declareFinished(Operation *op) {
    llvm::SmallDenseSet<StringRef> seen;
    for (Value operand : op->getOperands()) {
      auto get = operand.getDefiningOp<GetOp>();
      if (!get || activity.finalContributor(get.getParameter()) != op)
        continue;
      if (seen.insert(get.getParameter()).second)
        GradientOp::create(builder, get.getLoc(), get.getParameterAttr(), gradients.lookup(operand));
    }
  }

  void declareUnused() {
    for (auto parameter : module.getOps<ParameterOp>()) {
      if (parameter.getFrozen() || activity.finalContributor(parameter.getSymName()))
        continue;
      marker.setLayer(parameter.getLayerAttr());
      Value zero = FillOp::create(builder, parameter.getLoc(), parameter.getTypeAttr().getValue(),
                                  builder.getF64FloatAttr(0.0));
      GradientOp::create(builder, parameter.getLoc(), FlatSymbolRefAttr::get(parameter.getSymNameAttr()),
                         zero);
    }
  }

  // What ended at an op that does not depend smoothly on its operands (ft.sign), whose gradient is 0.
  void eraseDead() {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*builder.getInsertionBlock())))
      if (getPhase(&op) && getPhase(&op).getValue() == kPhaseBackward && isOpTriviallyDead(&op))
        op.erase();
  }

  ModuleOp module;
  Value loss;
  Seed seed;
  Activity activity;
  BackwardMarker marker;
  OpBuilder builder;
  SmallVector<Operation *> forwardOps;
  GradientTable gradients;
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

    ReverseMode reverse(getOperation(), block, block.getTerminator()->getOperand(0),
                        {gradientFactor, lossScale});
    if (failed(reverse.run()))
      return signalPassFailure();
    forward->setSymName(kTrainStepFunction);
  }
};

} // namespace
} // namespace mlir::ft
