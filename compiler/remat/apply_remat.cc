// --ft-apply-remat
// Enters: forward ops marked `remat`. Leaves: clones, of phase "recompute", of those marked "recompute", and
// backward reading the clones. Refused: a mark on what cannot be computed again.
#include "compiler/remat/passes.h"

#include "compiler/remat/training_graph.h"
#include "dialects/ft/composites.h"
#include "mlir/IR/IRMapping.h"

namespace ft::compiler {

#define GEN_PASS_DEF_APPLYREMATPASS
#include "compiler/remat/passes.h.inc"

namespace {

using namespace mlir;
using mlir::ft::getLayer;
using mlir::ft::GetOp;

bool isRecomputed(Operation *op) {
  auto choice = op ? op->getAttrOfType<StringAttr>(mlir::ft::kRematAttr) : StringAttr();
  return choice && choice == mlir::ft::kRematRecompute;
}

bool readsParameters(Operation *op) {
  return llvm::any_of(op->getOperands(), [](Value operand) { return operand.getDefiningOp<GetOp>(); });
}

class Recomputation {
public:
  explicit Recomputation(Block &block) : block(block) {
    for (Operation &op : block)
      positions[&op] = positions.size();
  }

  void run() {
    StringAttr layer;
    Operation *runBegin = nullptr;
    for (Operation &op : block) {
      if (!isBackward(&op))
        continue;
      if (StringAttr own = getLayer(&op); !runBegin || (own && own != layer)) {
        layer = own;
        runBegin = &op;
      }
      recomputeFor(&op, runBegin);
    }
  }

private:
  // Originals that are to be computed again before `reader` can run, in the order of forward.
  SmallVector<Operation *> missingFor(Operation *reader) const {
    llvm::DenseSet<Operation *> seen;
    SmallVector<Operation *> missing;
    SmallVector<Operation *> open = {reader};
    while (!open.empty())
      for (Value operand : open.pop_back_val()->getOperands()) {
        Operation *op = operand.getDefiningOp();
        if (!isRecomputed(op) || clones.contains(operand) || !seen.insert(op).second)
          continue;
        missing.push_back(op);
        open.push_back(op);
      }
    llvm::sort(missing,
               [&](Operation *a, Operation *b) { return positions.lookup(a) < positions.lookup(b); });
    return missing;
  }

  void recomputeFor(Operation *reader, Operation *runBegin) {
    SmallVector<Operation *> missing = missingFor(reader);
    size_t ahead = countAhead(missing, getLayer(reader));
    Operation *place = runBegin;
    for (Operation *original : ArrayRef(missing).take_front(ahead)) {
      for (Value operand : original->getOperands())
        if (Operation *definition = clones.lookupOrDefault(operand).getDefiningOp();
            definition && !definition->isBeforeInBlock(place))
          place = definition->getNextNode();
      clone(original, place);
    }
    for (Operation *original : ArrayRef(missing).drop_front(ahead))
      clone(original, reader);
    for (OpOperand &operand : reader->getOpOperands())
      operand.set(clones.lookupOrDefault(operand.get()));
  }

  // How many of `missing` go in front of the reader's run: up to the last op of another layer, when such ops
  // read parameters, whose gathers would part the run's own.
  static size_t countAhead(ArrayRef<Operation *> missing, StringAttr layer) {
    auto isForeign = [&](Operation *op) { return getLayer(op) != layer; };
    if (llvm::none_of(missing, [&](Operation *op) { return isForeign(op) && readsParameters(op); }))
      return 0;
    size_t ahead = missing.size();
    while (!isForeign(missing[ahead - 1]))
      --ahead;
    return ahead;
  }

  void clone(Operation *original, Operation *place) {
    OpBuilder builder(place);
    Operation *copy = builder.clone(*original, clones);
    copy->removeAttr(mlir::ft::kRematAttr);
    mlir::ft::setPhase(copy, mlir::ft::kPhaseRecompute);
  }

  Block &block;
  IRMapping clones; // results of originals to those of their clones
  llvm::DenseMap<Operation *, unsigned> positions;
};

LogicalResult checkMarks(func::FuncOp function) {
  for (Operation &op : function.getBody().front())
    if (isRecomputed(&op) && !isActivationOp(&op))
      return op.emitOpError("is marked remat = \"recompute\" but cannot be computed again");
  return success();
}

struct ApplyRematPass : impl::ApplyRematPassBase<ApplyRematPass> {
  void runOnOperation() override {
    for (func::FuncOp function : mlir::ft::programsOf(getOperation())) {
      if (failed(checkMarks(function)))
        return signalPassFailure();
      Recomputation(function.getBody().front()).run();
    }
  }
};

} // namespace
} // namespace ft::compiler
