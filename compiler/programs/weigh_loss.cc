// Multiplies a loss that counts targets by their share.
//
// Enters: @forward(inputs) -> loss, when @eval_step is made. Leaves: @forward returning loss * share where
// the loss counts targets; else as it was. Refused: no @forward.
#include "compiler/programs/passes.h"
#include "compiler/programs/position_rows.h"
#include "dialects/ft/elementwise.h"
#include "dialects/ft/signature.h"

namespace ft::compiler {

#define GEN_PASS_DEF_WEIGHLOSSPASS
#include "compiler/programs/passes.h.inc"

namespace {

using namespace mlir;
using mlir::ft::CountTargetsOp;
using mlir::ft::MulOp;

// How many of the targets may count: not those that the model leaves out, whatever the data has.
int64_t mayCount(Value targets, BlockArgument input) {
  std::optional<IdPlaces> places = input ? placesIn(targets, input) : std::nullopt;
  int64_t all = cast<RankedTensorType>(targets.getType()).getNumElements(), leftOut = 0;
  // All rows leave out as many.
  for (int64_t i = 0; places && i < all / places->rows; ++i)
    leftOut += places->at(i) < 0 ? places->rows : 0;
  return leftOut < all ? all - leftOut : all;
}

struct WeighLossPass : impl::WeighLossPassBase<WeighLossPass> {
  void runOnOperation() override {
    auto forward = getOperation().lookupSymbol<func::FuncOp>(mlir::ft::kForwardFunction);
    if (!forward || !forward.getBody().hasOneBlock() || forward.getNumResults() == 0) {
      getOperation().emitError("there is no function @forward of one block that returns the loss");
      return signalPassFailure();
    }
    Value targets = mlir::ft::countedTargets(forward);
    Operation *terminator = forward.getBody().front().getTerminator();
    Value loss = terminator->getOperand(0);
    Operation *entropy = mlir::ft::crossEntropyOf(loss);
    Operation *last = entropy ? entropy : loss.getDefiningOp();
    if (!targets || !last)
      return;
    // Before the loss: its kernel may make the gradients, too, and then reads what backward begins with.
    OpBuilder builder(last);
    auto pair = RankedTensorType::get({2}, builder.getI64Type());
    auto count = CountTargetsOp::create(builder, last->getLoc(), pair, loss.getType(), targets,
                                        mayCount(targets, mlir::ft::countedInput(forward)));
    builder.setInsertionPoint(terminator);
    auto weighed = MulOp::create(builder, last->getLoc(), ValueRange{loss, count.getShare()});
    for (Operation *op : {count.getOperation(), weighed.getOperation()})
      mlir::ft::setLayer(op, mlir::ft::getLayer(last));
    terminator->setOperand(0, weighed);
  }
};

} // namespace
} // namespace ft::compiler
