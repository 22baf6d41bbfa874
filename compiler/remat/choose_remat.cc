// --ft-choose-remat
// Enters: functions with a forward and a backward phase. Leaves: the attribute `remat` on the forward ops
// whose results backward needs. Refused: an unknown policy. Functions without backward stay as they are.
#include "compiler/remat/passes.h"

#include "compiler/remat/mark_choices.h"
#include "compiler/remat/policy_choices.h"
#include "dialects/ft/composites.h"

namespace ft::compiler {

#define GEN_PASS_DEF_CHOOSEREMATPASS
#include "compiler/remat/passes.h.inc"

namespace {

using namespace mlir;
using OpSet = llvm::DenseSet<Operation *>;

struct ChooseRematPass : impl::ChooseRematPassBase<ChooseRematPass> {
  using ChooseRematPassBase::ChooseRematPassBase;

  void runOnOperation() override {
    absl::StatusOr<RematPolicy> parsed = parseRematPolicy(remat.getValue());
    if (!parsed.ok() || parsed->kind == RematPolicy::Kind::Budget) {
      getOperation().emitError() << (parsed.ok()
                                         ? "a budget is met by the compiler's driver, not by this pass"
                                         : std::string(parsed.status().message()));
      return signalPassFailure();
    }
    for (func::FuncOp function : mlir::ft::programsOf(getOperation())) {
      TrainingGraph graph(function);
      if (!graph.hasBackward())
        continue;
      OpSet recomputed = recomputedBy(graph, *parsed);
      markChoices(graph, recomputed, offloadActivations ? offloadable(graph, recomputed) : OpSet());
    }
  }
};

} // namespace
} // namespace ft::compiler
