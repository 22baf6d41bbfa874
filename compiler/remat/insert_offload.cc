// --ft-insert-offload
// Enters: forward ops marked `remat`, clones in place. Leaves: an ft.offload and an ft.reload for each result
// of those marked "offload" that is read after forward. Nothing is refused.
#include "compiler/remat/passes.h"

#include "compiler/remat/training_graph.h"
#include "dialects/ft/composites.h"

namespace ft::compiler {

#define GEN_PASS_DEF_INSERTOFFLOADPASS
#include "compiler/remat/passes.h.inc"

namespace {

using namespace mlir;
using mlir::ft::HostType;
using mlir::ft::OffloadOp;
using mlir::ft::ReloadOp;

void tag(Operation *op, Operation *owner, StringRef phase) {
  mlir::ft::setLayer(op, mlir::ft::getLayer(owner));
  mlir::ft::setPhase(op, phase);
}

// Sends `value` to the host after its last reader in forward and gets it back before the first later one.
void offload(OpResult value) {
  Operation *lastForward = value.getOwner(), *firstLater = nullptr;
  for (Operation *user : value.getUsers()) {
    if (isForward(user))
      lastForward = lastForward->isBeforeInBlock(user) ? user : lastForward;
    else if (user != user->getBlock()->getTerminator())
      firstLater = !firstLater || user->isBeforeInBlock(firstLater) ? user : firstLater;
  }
  if (!firstLater)
    return;
  OpBuilder builder(value.getContext());
  builder.setInsertionPointAfter(lastForward);
  auto type = cast<RankedTensorType>(value.getType());
  auto away = OffloadOp::create(builder, value.getLoc(), HostType::get(value.getContext(), type), value);
  tag(away, value.getOwner(), mlir::ft::kPhaseForward);
  builder.setInsertionPoint(firstLater);
  auto back = ReloadOp::create(builder, value.getLoc(), type, away.getThere());
  StringAttr phase = mlir::ft::getPhase(firstLater);
  tag(back, value.getOwner(), phase ? phase.getValue() : StringRef(mlir::ft::kPhaseBackward));
  value.replaceUsesWithIf(back.getX(), [&](OpOperand &use) {
    return !isForward(use.getOwner()) && use.getOwner() != use.getOwner()->getBlock()->getTerminator();
  });
}

struct InsertOffloadPass : impl::InsertOffloadPassBase<InsertOffloadPass> {
  void runOnOperation() override {
    for (func::FuncOp function : mlir::ft::programsOf(getOperation()))
      for (Operation &op : llvm::make_early_inc_range(function.getBody().front())) {
        auto choice = op.getAttrOfType<StringAttr>(mlir::ft::kRematAttr);
        if (choice && choice == mlir::ft::kRematOffload)
          for (OpResult result : op.getResults())
            offload(result);
      }
  }
};

} // namespace
} // namespace ft::compiler
