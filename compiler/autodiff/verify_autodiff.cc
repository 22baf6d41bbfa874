// --ft-verify-autodiff: checks what --ft-autodiff leaves, without using any of its code.
#include "compiler/autodiff/passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::ft {

#define GEN_PASS_DEF_VERIFYAUTODIFFPASS
#include "compiler/autodiff/passes.h.inc"

namespace {

// Phases are present, and the forward phase comes first.
LogicalResult verifyPhases(Block &block) {
  bool backward = false;
  for (Operation &op : block.without_terminator()) {
    auto phase = getPhase(&op);
    if (!phase || (phase != kPhaseForward && phase != kPhaseBackward))
      return op.emitError("needs phase = \"forward\" or \"backward\" after differentiation");
    if (phase == kPhaseForward && backward)
      return op.emitError("is of the forward phase but comes after an op of the backward phase");
    backward = phase == kPhaseBackward;
  }
  return success();
}

LogicalResult verifyNothingWasted(Block &block) {
  for (Operation &op : block.without_terminator()) {
    auto phase = getPhase(&op);
    if (phase == kPhaseBackward && op.use_empty() && isMemoryEffectFree(&op))
      return op.emitError("computes a gradient that nobody uses");
  }
  return success();
}

LogicalResult verifyGradients(ModuleOp module, Block &block) {
  llvm::StringMap<GradientOp> found;
  for (auto gradient : block.getOps<GradientOp>()) {
    if (!found.try_emplace(gradient.getParameter(), gradient).second)
      return gradient.emitError() << "is a second gradient of @" << gradient.getParameter();
  }
  for (auto parameter : module.getOps<ParameterOp>()) {
    GradientOp gradient = found.lookup(parameter.getSymName());
    if (parameter.getFrozen()) {
      if (gradient)
        return gradient.emitError() << "@" << parameter.getSymName()
                                    << " is frozen and must have no gradient";
      continue;
    }
    if (!gradient)
      return parameter.emitError() << "@" << parameter.getSymName() << " is trained but has no gradient";
    if (gradient.getValue().getType() != parameter.getTypeAttr().getValue())
      return gradient.emitError() << "is of type " << gradient.getValue().getType()
                                  << ", the parameter is of type " << parameter.getTypeAttr().getValue();
  }
  return success();
}

class VerifyAutodiffPass : public impl::VerifyAutodiffPassBase<VerifyAutodiffPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto step = module.lookupSymbol<func::FuncOp>(kTrainStepFunction);
    if (!step || !llvm::hasSingleElement(step.getBody())) {
      module.emitError("there is no function @train_step of one block");
      return signalPassFailure();
    }
    Block &block = step.getBody().front();
    if (failed(verifyPhases(block)) || failed(verifyGradients(module, block)) ||
        failed(verifyNothingWasted(block)))
      return signalPassFailure();
  }
};

} // namespace
} // namespace mlir::ft
