// Drops what trains.
//
// Enters: the functions after the optimizer stage. Leaves: those that are run without training, and
// composites that they call. Refused: nothing.
#include "compiler/programs/passes.h"
#include "dialects/ft/composites.h"

namespace ft::compiler {

#define GEN_PASS_DEF_DROPTRAININGPASS
#include "compiler/programs/passes.h.inc"

namespace {

using namespace mlir;

bool isCalled(func::FuncOp function) {
  return mlir::ft::isComposite(function) || mlir::ft::isUpdate(function) || mlir::ft::isCluster(function);
}

struct DropTrainingPass : impl::DropTrainingPassBase<DropTrainingPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    for (StringRef name : {mlir::ft::kTrainMicroFunction, mlir::ft::kTrainStepFunction})
      if (auto function = module.lookupSymbol<func::FuncOp>(name))
        function.erase();
    for (bool erased = true; erased;) {
      erased = false;
      for (func::FuncOp function : llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
        if (!isCalled(function) || !SymbolTable::symbolKnownUseEmpty(function, module))
          continue;
        function.erase();
        erased = true;
      }
    }
  }
};

} // namespace
} // namespace ft::compiler
