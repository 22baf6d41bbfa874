#include "compiler/programs/accuracy.h"

#include "compiler/programs/forward_copy.h"
#include "dialects/ft/dialect.h"
#include "dialects/ft/elementwise.h"
#include "dialects/ft/signature.h"

namespace ft::compiler {

using namespace mlir;
using namespace mlir::ft;

namespace {

constexpr llvm::StringLiteral kAccuracy = "accuracy";

/// A loss over logits that an evaluation holds, or may hold; null when there is none.
struct Logits {
  Value values;
  Value targets;
};

/// The product is made again, so that the loss and its own may become one op: its bits are those of training.
Value productAgain(OpBuilder &builder, MatmulOp head) {
  return cast<MatmulOp>(builder.clone(*head)).getResult();
}

Logits logitsOf(func::FuncOp function, OpBuilder &builder) {
  Operation *loss = crossEntropyOf(function.getBody().front().getTerminator()->getOperand(0));
  if (auto op = dyn_cast_or_null<CrossEntropyOp>(loss)) {
    bool isOfExamples = tensorTypeOf(op.getTargets()).getNumElements() == batchOf(function);
    auto head = op.getLogits().getDefiningOp<MatmulOp>();
    if (!head)
      return {op.getLogits(), op.getTargets()};
    if (head.getBias() || !head.getTransposeB())
      return {op.getLogits(), op.getTargets()}; // held: --ft-fuse-linear-cross-entropy leaves it
    return isOfExamples ? Logits{productAgain(builder, head), op.getTargets()} : Logits();
  }
  auto op = dyn_cast_or_null<LinearCrossEntropyOp>(loss);
  if (!op || tensorTypeOf(op.getTargets()).getNumElements() != batchOf(function))
    return {};
  SmallVector<int64_t> shape(tensorTypeOf(op.getX()).getShape());
  shape.back() = tensorTypeOf(op.getWeight()).getDimSize(0);
  auto values = MatmulOp::create(builder, op.getLoc(), tensorTypeOf(op.getX()).clone(shape), op.getX(),
                                 op.getWeight(), Value(), Value(), false, true);
  values.setPrecise(true); // as the head of training is
  return {values, op.getTargets()};
}

/// The mean over the targets that are not negative.
Value accuracyOf(OpBuilder &builder, Location loc, const Logits &logits) {
  RankedTensorType targets = tensorTypeOf(logits.targets),
                   scalar = RankedTensorType::get({}, builder.getF32Type());
  RankedTensorType ids = targets, first = targets.clone([&] {
    SmallVector<int64_t> shape(targets.getShape());
    shape.push_back(1);
    return shape;
  }());
  auto all = llvm::to_vector(llvm::seq<int64_t>(0, targets.getRank()));
  Value order = ArgsortOp::create(builder, loc, first, logits.values, /*descending=*/true);
  Value best = ReshapeOp::create(builder, loc, ids, order);
  Value right = EqOp::create(builder, loc, ValueRange{best, logits.targets});
  Value ones = ConvertOp::create(builder, loc, targets.clone(builder.getF32Type()), right);
  Value sum = ReduceOp::create(builder, loc, scalar, ones, "sum", all);
  // Counted in integers, as the loss does it.
  Value behind = ShiftOp::create(builder, loc, ValueRange{logits.targets}, 1.0);
  Value counts = ClampOp::create(builder, loc, ValueRange{behind}, ArrayRef<double>{0.0, 1.0});
  Value counted = ReduceOp::create(builder, loc, scalar.clone(builder.getI32Type()), counts, "sum", all);
  Value rows = ConvertOp::create(builder, loc, scalar, counted);
  Value atLeastOne = ClampOp::create(builder, loc, ValueRange{rows}, ArrayRef<double>{1.0, 4294967296.0});
  return DivOp::create(builder, loc, ValueRange{sum, atLeastOne});
}

} // namespace

void addAccuracy(func::FuncOp function) {
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    if (outputName(function, i) == kAccuracy)
      return;
  Operation *terminator = function.getBody().front().getTerminator();
  OpBuilder builder(terminator);
  Operation *last = terminator->getPrevNode();
  Logits logits = logitsOf(function, builder);
  if (!logits.values)
    return;
  Operation *loss = crossEntropyOf(terminator->getOperand(0));
  Value accuracy = accuracyOf(builder, loss->getLoc(), logits);
  for (Operation *op = last->getNextNode(); op != terminator; op = op->getNextNode())
    setLayer(op, getLayer(loss));
  SmallVector<NamedAttribute> attributes = {
      builder.getNamedAttr(kOutputAttr, builder.getStringAttr(kAccuracy))};
  if (countedTargets(function) == logits.targets && countedInput(function))
    attributes.push_back(builder.getNamedAttr(kCountedAttr, builder.getUnitAttr()));
  unsigned number = function.getNumResults();
  (void)function.insertResult(number, accuracy.getType(), builder.getDictionaryAttr(attributes));
  terminator->insertOperands(number, accuracy);
}

void markCrossEntropy(func::FuncOp function) {
  Operation *loss = crossEntropyOf(function.getBody().front().getTerminator()->getOperand(0));
  Value targets = loss ? targetsOf(loss) : Value();
  if (targets && targets == countedTargets(function) && countedInput(function))
    function.setResultAttr(0, kCountedAttr, UnitAttr::get(function.getContext()));
}

} // namespace ft::compiler
