// Makes @train_micro.
//
// Enters: @train_step with units formed, before the optimizer. Leaves: see passes.td. Refused: no
// @train_step, fewer than one micro-step.
#include "compiler/programs/passes.h"
#include "dialects/ft/elementwise.h"

namespace ft::compiler {

#define GEN_PASS_DEF_MAKEMICROSTEPPASS
#include "compiler/programs/passes.h.inc"

namespace {

using namespace mlir;
using mlir::ft::AccumulatedOp;
using mlir::ft::AccumulateOp;
using mlir::ft::CountTargetsOp;
using mlir::ft::PackOp;
using mlir::ft::ScaleOp;

constexpr llvm::StringLiteral kLossState = "loss";
constexpr llvm::StringLiteral kCountState = "counted";

StringRef stateOf(PackOp pack) { return pack.getFlat().getType().getUnit().getValue(); }

// A copy whose gradients and loss are added up.
func::FuncOp makeMicroStep(func::FuncOp train) {
  func::FuncOp micro = train.clone();
  micro.setSymName(mlir::ft::kTrainMicroFunction);
  for (PackOp pack : llvm::make_early_inc_range(micro.getOps<PackOp>())) {
    OpBuilder builder(pack);
    builder.setInsertionPointAfter(pack);
    auto sum = AccumulateOp::create(builder, pack.getLoc(), pack.getFlat(), stateOf(pack));
    mlir::ft::setLayer(sum, mlir::ft::getLayer(pack));
    mlir::ft::setPhase(sum, mlir::ft::kPhaseBackward);
  }
  Operation *terminator = micro.getBody().front().getTerminator();
  OpBuilder builder(terminator);
  auto add = [&](Value value, StringRef state) {
    auto sum = AccumulateOp::create(builder, terminator->getLoc(), value, state);
    mlir::ft::setPhase(sum, mlir::ft::kPhaseBackward);
  };
  add(terminator->getOperand(0), kLossState);
  for (CountTargetsOp count : micro.getOps<CountTargetsOp>())
    add(count.getCount(), kCountState);
  terminator->setOperands({});
  micro.setFunctionType(builder.getFunctionType(micro.getArgumentTypes(), {}));
  return micro;
}

// The last micro-step takes what the others have added up.
void takeSums(func::FuncOp train, int64_t microSteps) {
  for (PackOp pack : llvm::make_early_inc_range(train.getOps<PackOp>())) {
    OpBuilder builder(pack);
    builder.setInsertionPointAfter(pack);
    auto all = AccumulatedOp::create(builder, pack.getLoc(), pack.getFlat().getType(), pack.getFlat(),
                                     stateOf(pack));
    mlir::ft::setLayer(all, mlir::ft::getLayer(pack));
    mlir::ft::setPhase(all, mlir::ft::kPhaseBackward);
    pack.getFlat().replaceAllUsesExcept(all.getResult(), all);
  }
  Operation *terminator = train.getBody().front().getTerminator();
  OpBuilder builder(terminator);
  Value loss = terminator->getOperand(0);
  auto all = AccumulatedOp::create(builder, loss.getLoc(), loss.getType(), loss, kLossState);
  auto mean = ScaleOp::create(builder, loss.getLoc(), ValueRange(all.getResult()),
                              1.0 / static_cast<double>(microSteps));
  for (Operation *op : {all.getOperation(), mean.getOperation()})
    mlir::ft::setPhase(op, mlir::ft::kPhaseBackward);
  terminator->setOperand(0, mean);
  for (CountTargetsOp count : train.getOps<CountTargetsOp>()) {
    auto total = AccumulatedOp::create(builder, count.getLoc(), count.getCount().getType(), count.getCount(),
                                       kCountState);
    mlir::ft::setPhase(total, mlir::ft::kPhaseBackward);
  }
}

struct MakeMicroStepPass : impl::MakeMicroStepPassBase<MakeMicroStepPass> {
  using MakeMicroStepPassBase::MakeMicroStepPassBase;

  void runOnOperation() override {
    auto train = getOperation().lookupSymbol<func::FuncOp>(mlir::ft::kTrainStepFunction);
    if (!train || microSteps < 1) {
      getOperation().emitError() << (train ? "a training step has at least one micro-step"
                                           : "no @train_step; run ft-autodiff first");
      return signalPassFailure();
    }
    if (microSteps == 1)
      return;
    train->getParentRegion()->front().getOperations().insert(train->getIterator(), makeMicroStep(train));
    takeSums(train, microSteps);
    getOperation()->setAttr("ft.micro_steps", OpBuilder(train).getI64IntegerAttr(microSteps));
  }
};

} // namespace
} // namespace ft::compiler
