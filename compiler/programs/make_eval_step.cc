// Makes @eval_step.
//
// Enters: @forward(tokens, targets) -> loss. Leaves: it, and @eval_step(tokens, targets) -> {loss * n, n}.
// Refused: no
// @forward.
#include "compiler/programs/passes.h"

namespace ft::compiler {

#define GEN_PASS_DEF_MAKEEVALSTEPPASS
#include "compiler/programs/passes.h.inc"

namespace {

using namespace mlir;
using mlir::ft::DropoutOp;
using mlir::ft::InputOp;
using mlir::ft::LossCountOp;

void removeDropout(func::FuncOp function) {
  for (DropoutOp op : llvm::make_early_inc_range(function.getOps<DropoutOp>())) {
    op.replaceAllUsesWith(op.getX());
    op.erase();
  }
  for (InputOp input : llvm::make_early_inc_range(function.getOps<InputOp>()))
    if (input->use_empty())
      input.erase();
}

void returnWeightedLoss(func::FuncOp function) {
  Operation *terminator = function.getBody().front().getTerminator();
  OpBuilder builder(terminator);
  auto type = RankedTensorType::get({2}, builder.getF32Type());
  Value loss = terminator->getOperand(0);
  auto sum = LossCountOp::create(builder, loss.getLoc(), type, loss, function.getArgument(1));
  if (Operation *source = loss.getDefiningOp())
    mlir::ft::setLayer(sum, mlir::ft::getLayer(source));
  terminator->setOperand(0, sum);
  function.setFunctionType(builder.getFunctionType(function.getArgumentTypes(), type));
}

struct MakeEvalStepPass : impl::MakeEvalStepPassBase<MakeEvalStepPass> {
  void runOnOperation() override {
    auto forward = getOperation().lookupSymbol<func::FuncOp>(mlir::ft::kForwardFunction);
    if (!forward || !forward.getBody().hasOneBlock() || forward.getNumResults() != 1) {
      getOperation().emitError("there is no function @forward of one block that returns the loss");
      return signalPassFailure();
    }
    func::FuncOp evaluation = forward.clone();
    evaluation.setSymName(mlir::ft::kEvalStepFunction);
    getOperation().push_back(evaluation);
    removeDropout(evaluation);
    returnWeightedLoss(evaluation);
    for (Operation &op : evaluation.getBody().front().without_terminator())
      mlir::ft::setPhase(&op, mlir::ft::kPhaseForward);
  }
};

} // namespace
} // namespace ft::compiler
