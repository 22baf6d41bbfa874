// From functions to programs.
//
// Enters: @init, @train_micro, @train_step, @eval_step, @sample_step after the stages shard and precision.
// Leaves: ft.unit, ft.parameter, persistent buffers, ftx.states and one ftx.program per function; bodies of
// clusters stay. Refused: ops that the shard stage should have removed, other functions.
#include "compiler/lower/passes.h"

#include "compiler/lower/function_lowering.h"
#include "dialects/ft/composites.h"

namespace ft::compiler {

#define GEN_PASS_DEF_LOWERTOFTXPASS
#include "compiler/lower/passes.h.inc"

namespace {

using namespace mlir;

LogicalResult checkFunctions(ModuleOp module) {
  for (func::FuncOp function : mlir::ft::programsOf(module)) {
    StringRef name = function.getSymName();
    if (!llvm::is_contained({mlir::ft::kInitFunction, mlir::ft::kTrainMicroFunction,
                             mlir::ft::kTrainStepFunction, mlir::ft::kEvalStepFunction,
                             mlir::ft::kSampleStepFunction},
                            name))
      return function.emitError() << "only @init, @train_micro, @train_step, @eval_step and @sample_step can "
                                  << "be scheduled, not @" << name;
    if (!function.getBody().hasOneBlock())
      return function.emitError() << "@" << name << " must have one block";
  }
  if (!module.lookupSymbol<func::FuncOp>(mlir::ft::kTrainStepFunction) &&
      !module.lookupSymbol<func::FuncOp>(mlir::ft::kEvalStepFunction))
    return module.emitError("no @train_step to schedule");
  return success();
}

struct LowerToFtxPass : impl::LowerToFtxPassBase<LowerToFtxPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(checkFunctions(module)))
      return signalPassFailure();
    SmallVector<func::FuncOp> functions = llvm::to_vector(mlir::ft::programsOf(module));
    OpBuilder builder(functions.front());
    JobState state(module, builder);
    for (func::FuncOp function : functions) {
      OpBuilder end = OpBuilder::atBlockEnd(module.getBody());
      ProgramBuilder program(end, function.getLoc(), function.getSymName());
      if (failed(FunctionLowering(function, state, program).run()))
        return signalPassFailure();
    }
    for (func::FuncOp function : functions)
      function.erase();
  }
};

} // namespace
} // namespace ft::compiler
