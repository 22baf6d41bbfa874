// From functions to programs.
//
// Enters: @init and @train_step after the shard phase. Leaves: ft.unit, ft.parameter, persistent buffers,
// ftx.unit_state and one ftx.program per function. Refused: ops that the shard phase should have removed,
// other functions.
#include "compiler/schedule/passes.h"

#include "compiler/schedule/function_lowering.h"

namespace ft::compiler {

#define GEN_PASS_DEF_LOWERTOFTXPASS
#include "compiler/schedule/passes.h.inc"

namespace {

using namespace mlir;
using mlir::ftx::View;

/// Padding and moments start at zero, and so does all of a parameter before its own initialisation.
void zeroState(const JobState &state, ProgramBuilder &program) {
  for (const UnitState &unit : state.allUnits()) {
    mlir::ft::UnitOp op = unit.unit;
    Builder builder(op.getContext());
    Tag tag{op.getLoc(), {}, builder.getStringAttr("init")};
    for (Value buffer : {unit.values, unit.expAvg, unit.expAvgSq}) {
      if (!buffer)
        continue;
      program.kernel({.name = "fill",
                      .ins = {},
                      .outs = {View{buffer, 0, builder.getF32Type()}},
                      .workspace = {},
                      .attributes = {builder.getNamedAttr("value", builder.getF64FloatAttr(0.0))},
                      .bytes = op.getElements() * kMasterBytes},
                     tag);
    }
  }
}

LogicalResult checkFunctions(ModuleOp module) {
  for (auto function : module.getOps<func::FuncOp>()) {
    StringRef name = function.getSymName();
    if (name != mlir::ft::kInitFunction && name != mlir::ft::kTrainStepFunction)
      return function.emitError() << "only @init and @train_step can be scheduled, not @" << name;
    if (!function.getBody().hasOneBlock())
      return function.emitError() << "@" << name << " must have one block";
  }
  if (!module.lookupSymbol<func::FuncOp>(mlir::ft::kTrainStepFunction))
    return module.emitError("no @train_step to schedule");
  return success();
}

struct LowerToFtxPass : impl::LowerToFtxPassBase<LowerToFtxPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(checkFunctions(module)))
      return signalPassFailure();
    SmallVector<func::FuncOp> functions(module.getOps<func::FuncOp>());
    OpBuilder builder(functions.front());
    JobState state(module, builder);
    for (func::FuncOp function : functions) {
      OpBuilder end = OpBuilder::atBlockEnd(module.getBody());
      ProgramBuilder program(end, function.getLoc(), function.getSymName());
      if (function.getSymName() == mlir::ft::kInitFunction)
        zeroState(state, program);
      if (failed(FunctionLowering(function, state, program).run()))
        return signalPassFailure();
    }
    for (func::FuncOp function : functions)
      function.erase();
  }
};

} // namespace
} // namespace ft::compiler
