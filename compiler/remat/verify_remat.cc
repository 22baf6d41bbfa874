// --ft-verify-remat: checks what the remat stage leaves, without using any of its code.
#include "compiler/remat/passes.h"

#include <map>
#include <tuple>

#include "dialects/ft/composites.h"
#include "llvm/ADT/DenseMap.h"

namespace ft::compiler {

#define GEN_PASS_DEF_VERIFYREMATPASS
#include "compiler/remat/passes.h.inc"

namespace {

using namespace mlir;
using mlir::ft::getLayer;
using mlir::ft::getPhase;
using mlir::ft::kRematAttr;
using mlir::ft::OffloadOp;
using mlir::ft::ReloadOp;

bool is(StringAttr attr, StringRef text) { return attr && attr == text; }

StringAttr choiceOf(Operation *op) { return op ? op->getAttrOfType<StringAttr>(kRematAttr) : StringAttr(); }

bool runsAfterForward(Operation *op) {
  StringAttr phase = getPhase(op);
  return is(phase, mlir::ft::kPhaseRecompute) || is(phase, mlir::ft::kPhaseBackward);
}

class Verifier {
public:
  explicit Verifier(Block &block) : block(block) {}

  LogicalResult run() {
    for (Operation &op : block)
      if (failed(verifyMark(&op)) || failed(verifyClone(&op)) || failed(verifyReads(&op)) ||
          failed(verifyTransfer(&op)))
        return failure();
    return success();
  }

private:
  LogicalResult verifyMark(Operation *op) {
    Attribute attr = op->getAttr(kRematAttr);
    if (!attr)
      return success();
    StringAttr choice = choiceOf(op);
    if (!is(choice, mlir::ft::kRematKeep) && !is(choice, mlir::ft::kRematRecompute) &&
        !is(choice, mlir::ft::kRematOffload))
      return op->emitOpError() << "has remat = " << attr
                               << "; expected \"keep\", \"recompute\" or \"offload\"";
    if (!is(getPhase(op), mlir::ft::kPhaseForward))
      return op->emitOpError("is marked for recomputation but is not of the forward phase");
    if (!is(choice, mlir::ft::kRematRecompute))
      return success();
    auto kernel = dyn_cast<mlir::ft::KernelOpInterface>(op);
    if (!kernel || !kernel.isRecomputable())
      return op->emitOpError("is marked remat = \"recompute\" but cannot be computed again");
    Key key = keyOf(op); // before `next` is read: it may number operands
    auto [found, first] = computations.try_emplace(std::move(key), Computation{next, 0});
    if (first)
      next += op->getNumResults();
    ++found->second.left;
    numberResults(op, found->second);
    return success();
  }

  // Values that are the same: those of ops of one name, attributes and operands, repeated or not. Two ops of
  // a forward graph may be alike, and then either is what a third repeats.
  struct Computation {
    unsigned first; // number of its first result
    unsigned left;  // marked "recompute" and not yet repeated
  };
  using Key = std::tuple<const void *, const void *, SmallVector<const void *>, SmallVector<unsigned>>;

  unsigned numberOf(Value value) {
    if (auto reload = value.getDefiningOp<ReloadOp>())
      if (auto offload = reload.getThere().getDefiningOp<OffloadOp>())
        return numberOf(offload.getX());
    auto [found, first] = numbers.try_emplace(value, next);
    next += first ? 1 : 0;
    return found->second;
  }

  void numberResults(Operation *op, const Computation &computation) {
    for (OpResult result : op->getResults())
      numbers[result] = computation.first + result.getResultNumber();
  }

  Key keyOf(Operation *op) {
    NamedAttrList attributes(op->getAttrDictionary());
    attributes.erase(kRematAttr);
    attributes.erase(mlir::ft::kPhaseAttr);
    return {op->getName().getAsOpaquePointer(),
            attributes.getDictionary(op->getContext()).getAsOpaquePointer(),
            llvm::map_to_vector(op->getResultTypes(), [](Type type) { return type.getAsOpaquePointer(); }),
            llvm::map_to_vector(op->getOperands(), [&](Value operand) { return numberOf(operand); })};
  }

  LogicalResult verifyClone(Operation *op) {
    if (!is(getPhase(op), mlir::ft::kPhaseRecompute) || isa<ReloadOp>(op))
      return success();
    auto found = computations.find(keyOf(op));
    if (found == computations.end() || found->second.left == 0)
      return op->emitOpError(
          "is of phase \"recompute\" but repeats no forward op marked remat = \"recompute\", "
          "or one that was repeated before");
    --found->second.left;
    numberResults(op, found->second);
    return success();
  }

  LogicalResult verifyReads(Operation *op) {
    if (!runsAfterForward(op))
      return success();
    for (Value operand : op->getOperands()) {
      StringAttr choice = choiceOf(operand.getDefiningOp());
      if (is(choice, mlir::ft::kRematRecompute))
        return op->emitOpError() << "reads what '" << operand.getDefiningOp()->getName()
                                 << "' computed in forward, which is marked remat = \"recompute\"";
      if (is(choice, mlir::ft::kRematOffload))
        return op->emitOpError()
               << "reads what '" << operand.getDefiningOp()->getName()
               << "' computed in forward, which is marked remat = \"offload\", without ft.reload";
    }
    return success();
  }

  LogicalResult verifyTransfer(Operation *op) {
    if (auto offload = dyn_cast<OffloadOp>(op)) {
      if (!is(choiceOf(offload.getX().getDefiningOp()), mlir::ft::kRematOffload))
        return op->emitOpError("moves what is not marked remat = \"offload\"");
      if (!is(getPhase(op), mlir::ft::kPhaseForward) || !offload.getThere().hasOneUse())
        return op->emitOpError("must be of the forward phase and be reloaded once");
      for (Operation *user : offload.getX().getUsers())
        if (is(getPhase(user), mlir::ft::kPhaseForward) && offload->isBeforeInBlock(user))
          return op->emitOpError("stands before an op of forward that reads what it moves away");
    }
    if (auto reload = dyn_cast<ReloadOp>(op); reload && !runsAfterForward(op))
      return op->emitOpError("must be of phase \"recompute\" or \"backward\"");
    return success();
  }

  Block &block;
  std::map<Key, Computation> computations;
  llvm::DenseMap<Value, unsigned> numbers;
  unsigned next = 0;
};

struct VerifyRematPass : impl::VerifyRematPassBase<VerifyRematPass> {
  void runOnOperation() override {
    for (func::FuncOp function : mlir::ft::programsOf(getOperation()))
      if (failed(Verifier(function.getBody().front()).run()))
        return signalPassFailure();
  }
};

} // namespace
} // namespace ft::compiler
