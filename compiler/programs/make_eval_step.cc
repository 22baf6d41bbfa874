// Makes @eval_step.
//
// Enters: @forward(inputs) -> loss, named outputs. Leaves: it without outputs and what only they need, and
// @eval_step(inputs) -> {loss * n, n} and the same of each output. Refused: no @forward.
#include "compiler/programs/passes.h"
#include "dialects/ft/composites.h"
#include "dialects/ft/signature.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace ft::compiler {

#define GEN_PASS_DEF_MAKEEVALSTEPPASS
#include "compiler/programs/passes.h.inc"

namespace {

using namespace mlir;
using mlir::ft::CallOp;
using mlir::ft::InputOp;
using mlir::ft::IotaOp;
using mlir::ft::LossCountOp;
using mlir::ft::RandomOpInterface;

// Composites with dropout in them have a variant without.
class DropoutRemover {
public:
  explicit DropoutRemover(ModuleOp module) : symbols(module) {}

  void removeFrom(func::FuncOp function) {
    for (auto op : llvm::make_early_inc_range(function.getOps<RandomOpInterface>())) {
      if (!op.hasDropout())
        continue;
      if (auto call = dyn_cast<CallOp>(op.getOperation()))
        call.setCallee(variantOf(mlir::ft::calleeOf(call)).getSymName());
      else
        op.removeDropout();
    }
  }

private:
  func::FuncOp variantOf(func::FuncOp composite) {
    func::FuncOp &variant = variants[composite];
    if (variant)
      return variant;
    func::FuncOp clone = composite.clone();
    clone.setSymName((composite.getSymName() + ".eval").str());
    symbols.insert(clone);
    removeFrom(clone);
    return variants[composite] = clone;
  }

  SymbolTable symbols;
  llvm::DenseMap<Operation *, func::FuncOp> variants;
};

void removeDropout(func::FuncOp function) {
  DropoutRemover(function->getParentOfType<ModuleOp>()).removeFrom(function);
  for (InputOp input : llvm::make_early_inc_range(function.getOps<InputOp>()))
    if (input->use_empty())
      input.erase();
}

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
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

struct MakeEvalStepPass : impl::MakeEvalStepPassBase<MakeEvalStepPass> {
  void runOnOperation() override {
    auto forward = getOperation().lookupSymbol<func::FuncOp>(mlir::ft::kForwardFunction);
    if (!forward || !forward.getBody().hasOneBlock() || forward.getNumResults() == 0) {
      getOperation().emitError("there is no function @forward of one block that returns the loss");
      return signalPassFailure();
    }
    func::FuncOp evaluation = forward.clone();
    evaluation.setSymName(mlir::ft::kEvalStepFunction);
    getOperation().push_back(evaluation);
    removeDropout(evaluation);
    returnSums(evaluation);
    removeOutputs(forward);
    for (Operation &op : evaluation.getBody().front().without_terminator())
      mlir::ft::setPhase(&op, mlir::ft::kPhaseForward);
  }
};

} // namespace
} // namespace ft::compiler
