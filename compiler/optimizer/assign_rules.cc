// --ft-assign-rules
// Enters: @train_step is differentiated; parameters lie in no units yet. Leaves: see passes.td. Refused: an
// unknown optimizer, a pattern that no matrix matches, a rule of hidden matrices for a model that has none.
#include "compiler/optimizer/passes.h"
#include "compiler/optimizer/rules.h"

#include "dialects/ft/composites.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "runtime/base/glob.h"
#include "llvm/ADT/StringMap.h"

namespace ft::compiler {

#define GEN_PASS_DEF_ASSIGNRULESPASS
#include "compiler/optimizer/passes.h.inc"

namespace {

using namespace mlir;
using mlir::ft::GetOp;
using mlir::ft::ParameterOp;

bool isProduct(Operation *op) { return isa<mlir::ft::MatmulOp, mlir::ft::DotOp, mlir::ft::GroupedDotOp>(op); }

bool isLossOfLogits(Operation *op) {
  auto call = dyn_cast<mlir::ft::CallOp>(op);
  mlir::ft::OriginAttr origin = call ? mlir::ft::originOf(mlir::ft::calleeOf(call)) : mlir::ft::OriginAttr();
  return origin && origin.getOp() == mlir::ft::CrossEntropyOp::getOperationName();
}

// Logits: the result of a product, in whatever shape, of which a loss is made.
bool becomesLoss(Value value) {
  return llvm::any_of(value.getUsers(), [](Operation *user) {
    return isLossOfLogits(user) || (isa<mlir::ft::ReshapeOp>(user) && becomesLoss(user->getResult(0)));
  });
}

// Read by products alone, none of which makes logits.
bool isHidden(Value weight) {
  return llvm::all_of(weight.getUsers(), [](Operation *user) {
    if (isa<mlir::ft::ReshapeOp, mlir::ft::TransposeOp>(user))
      return isHidden(user->getResult(0));
    return isProduct(user) && !becomesLoss(user->getResult(0));
  });
}

struct AssignRulesPass : impl::AssignRulesPassBase<AssignRulesPass> {
  using AssignRulesPassBase::AssignRulesPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    const OptimizerRule *rule = findOptimizerRule(optimizer.getValue());
    auto train = module.lookupSymbol<func::FuncOp>(mlir::ft::kTrainStepFunction);
    if (!rule || !train) {
      if (rule)
        module.emitError("no @train_step; run ft-autodiff first");
      else
        module.emitError("unknown optimizer '" + optimizer + "'; one of " + optimizerNames());
      return signalPassFailure();
    }
    if (!rule->others.empty() && failed(assign(module, train, *rule)))
      signalPassFailure();
  }

  LogicalResult assign(ModuleOp module, func::FuncOp train, const OptimizerRule &rule) {
    llvm::StringMap<bool> hidden;
    for (GetOp get : train.getOps<GetOp>()) {
      auto [it, isNew] = hidden.try_emplace(get.getParameter(), true);
      it->second &= isHidden(get.getValue());
    }
    std::vector<bool> used(adamwParams.size());
    bool any = false;
    for (ParameterOp parameter : module.getOps<ParameterOp>()) {
      bool excepted = false;
      for (size_t i = 0; i < adamwParams.size(); ++i)
        if (MatchesGlob(adamwParams[i], parameter.getSymName().str()))
          used[i] = excepted = true;
      if (excepted || parameter.getFrozen() || cast<RankedTensorType>(parameter.getType()).getRank() < 2 ||
          !hidden.lookup(parameter.getSymName()))
        continue;
      parameter.setRule(StringRef(rule.name));
      any = true;
    }
    for (size_t i = 0; i < used.size(); ++i)
      if (!used[i])
        return module.emitError() << "no parameter matches '" << adamwParams[i]
                                  << "', which adamw-params names";
    if (any)
      return success();
    return module.emitError() << "optimizer " << StringRef(rule.name)
                              << " is for the matrices of hidden layers, and the model trains none; take "
                              << StringRef(rule.others);
  }
};

} // namespace
} // namespace ft::compiler
