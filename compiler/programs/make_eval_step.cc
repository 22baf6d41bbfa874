// Makes @eval_step.
//
// Enters: @forward(inputs) -> loss, named outputs. Leaves: it without outputs and what only they need, and
// @eval_step(inputs) -> {loss * n, n} and the same of each output, and of the accuracy where that is asked
// for. Refused: no @forward.
#include "compiler/programs/accuracy.h"
#include "compiler/programs/forward_copy.h"
#include "compiler/programs/passes.h"
#include "dialects/ft/signature.h"

namespace ft::compiler {

#define GEN_PASS_DEF_MAKEEVALSTEPPASS
#include "compiler/programs/passes.h.inc"

namespace {

using namespace mlir;
using mlir::ft::IotaOp;
using mlir::ft::LossCountOp;

// What the loss counts, or as many ids as a batch has examples.
Value countedIds(func::FuncOp function, OpBuilder &builder) {
  if (Value targets = mlir::ft::countedTargets(function))
    return targets;
  auto type = RankedTensorType::get({mlir::ft::batchOf(function)}, builder.getI32Type());
  return IotaOp::create(builder, function.getLoc(), type);
}

void returnSums(func::FuncOp function) {
  Operation *terminator = function.getBody().front().getTerminator();
  OpBuilder builder(terminator);
  auto type = RankedTensorType::get({2}, builder.getF32Type());
  Value ids = countedIds(function, builder);
  for (OpOperand &mean : terminator->getOpOperands()) {
    auto sum = LossCountOp::create(builder, mean.get().getLoc(), type, mean.get(), ids);
    if (Operation *source = mean.get().getDefiningOp())
      mlir::ft::setLayer(sum, mlir::ft::getLayer(source));
    mean.set(sum);
  }
  function.setFunctionType(
      builder.getFunctionType(function.getArgumentTypes(), terminator->getOperandTypes()));
}

// Training computes nothing for them.
void removeOutputs(func::FuncOp function) {
  if (function.getNumResults() == 1)
    return;
  Block &body = function.getBody().front();
  body.getTerminator()->eraseOperands(1, function.getNumResults() - 1);
  llvm::BitVector outputs(function.getNumResults(), true);
  outputs.reset(0);
  (void)function.eraseResults(outputs);
  eraseDeadOps(function);
}

struct MakeEvalStepPass : impl::MakeEvalStepPassBase<MakeEvalStepPass> {
  using MakeEvalStepPassBase::MakeEvalStepPassBase;

  void runOnOperation() override {
    auto forward = getOperation().lookupSymbol<func::FuncOp>(mlir::ft::kForwardFunction);
    if (!forward || !forward.getBody().hasOneBlock() || forward.getNumResults() == 0) {
      getOperation().emitError("there is no function @forward of one block that returns the loss");
      return signalPassFailure();
    }
    func::FuncOp evaluation = copyWithoutDropout(forward, mlir::ft::kEvalStepFunction);
    if (accuracy) {
      markCrossEntropy(evaluation);
      addAccuracy(evaluation);
    }
    returnSums(evaluation);
    removeOutputs(forward);
    markForward(evaluation);
  }
};

} // namespace
} // namespace ft::compiler
