// Makes @sample_step.
//
// Enters: @forward(inputs) -> loss, whose cross entropy has a target for each token of the input "tokens".
// Leaves: it as it is, and @sample_step: see passes.td. Refused: other losses, attention that is not causal,
// inputs whose values nobody knows when a text is continued.
#include "compiler/programs/forward_copy.h"
#include "compiler/programs/passes.h"
#include "compiler/programs/position_rows.h"
#include "dialects/ft/elementwise.h"
#include "dialects/ft/signature.h"
#include "llvm/ADT/TypeSwitch.h"

#include <numeric>

#include "runtime/plan/inputs.h"

namespace ft::compiler {

#define GEN_PASS_DEF_MAKESAMPLESTEPPASS
#include "compiler/programs/passes.h.inc"

namespace {

using namespace mlir;
using namespace mlir::ft;

constexpr llvm::StringLiteral kWhy = "a text cannot be continued (--sample): ";

class SampleStep {
public:
  explicit SampleStep(func::FuncOp function)
      : function(function), block(function.getBody().front()), tokens(findTokens(function)) {}

  LogicalResult make() {
    if (!tokens || tensorTypeOf(tokens).getRank() != 2 ||
        !isa<IntegerType>(tensorTypeOf(tokens).getElementType()))
      return function.emitError() << kWhy << "the model has no input 'tokens' or 'input_ids' of integers "
                                  << "[batch, sequence]";
    Operation *loss = findLoss();
    if (!loss)
      return failure();
    returnLogits(loss);
    eraseDeadOps(function);
    if (failed(checkAttention()) || failed(checkInputs()))
      return failure();
    markForward(function);
    return success();
  }

private:
  int64_t batch() const { return tensorTypeOf(tokens).getDimSize(0); }
  int64_t length() const { return tensorTypeOf(tokens).getDimSize(1); }

  /// Whether row t of each sequence has as its target the token behind token t. Input "targets" has that at
  /// t, "labels" at t + 1; what lies behind a sequence may be anything.
  bool predictsNext(Value targets) const {
    for (auto [name, shift] : {std::pair<StringRef, int64_t>(kTargetsInput, 0), {"labels", 1}}) {
      BlockArgument input = findInput(function, name);
      if (!input || tensorTypeOf(input).getShape() != tensorTypeOf(tokens).getShape() ||
          tensorTypeOf(targets).getNumElements() != batch() * length())
        continue;
      std::optional<IdPlaces> places = placesIn(targets, input);
      bool fits = places.has_value();
      // Of sequences that are alike the first ones.
      int64_t sequences = places ? batch() / std::gcd(batch(), places->rows) : 0;
      for (int64_t i = 0; fits && i < sequences * length(); ++i)
        fits = i % length() + shift >= length() || places->at(i) == i + shift;
      if (fits)
        return true;
    }
    return false;
  }

  /// The op whose logits predict the next token; null after an error.
  Operation *findLoss() {
    Operation *found = nullptr;
    for (Operation &op : block) {
      Value targets = targetsOf(&op);
      if (!targets)
        continue;
      if (found) {
        op.emitError() << kWhy << "the loss has two cross entropies, and it is not known which one is of the "
                       << "next token";
        return nullptr;
      }
      found = &op;
    }
    if (!found) {
      function.emitError() << kWhy << "the loss is no cross entropy";
      return nullptr;
    }
    if (!predictsNext(targetsOf(found))) {
      found->emitError() << kWhy << "the targets of its loss are not the token behind each token "
                         << "('targets', or 'labels' that are shifted by one)";
      return nullptr;
    }
    return found;
  }

  /// The number of the row of the position, for each sequence.
  Value rowIds(OpBuilder &builder, Location loc) {
    auto scalar = RankedTensorType::get({}, builder.getI32Type());
    auto ids = RankedTensorType::get({batch()}, builder.getI32Type());
    Value position = InputOp::create(builder, loc, scalar, kSamplePositionInput);
    Value sequences = IotaOp::create(builder, loc, ids);
    Value first = ScaleOp::create(builder, loc, ValueRange{sequences}, static_cast<double>(length()));
    Value same = BroadcastOp::create(builder, loc, ids, position);
    return AddOp::create(builder, loc, ValueRange{first, same});
  }

  void returnLogits(Operation *loss) {
    Operation *terminator = block.getTerminator(), *last = terminator->getPrevNode();
    OpBuilder builder(terminator);
    RowChooser rows(builder, rowIds(builder, loss->getLoc()));
    Value logits;
    if (auto linear = dyn_cast<LinearCrossEntropyOp>(loss)) {
      Value x = rows.choose(linear.getX());
      auto type = tensorTypeOf(x).clone({batch(), tensorTypeOf(linear.getWeight()).getDimSize(0)});
      auto head = MatmulOp::create(builder, loss->getLoc(), type, x, linear.getWeight(), Value(), Value(),
                                   false, true);
      head.setPrecise(true); // as the head of training is
      logits = head;
    } else {
      logits = rows.choose(cast<CrossEntropyOp>(loss).getLogits());
    }
    for (Operation *op = last->getNextNode(); op != terminator; op = op->getNextNode())
      setLayer(op, getLayer(loss));
    terminator->setOperands(logits);
    llvm::BitVector others(function.getNumResults(), true);
    others.reset(0);
    (void)function.eraseResults(others);
    function.setFunctionType(builder.getFunctionType(function.getArgumentTypes(), logits.getType()));
  }

  LogicalResult checkAttention() {
    auto check = [](auto op) -> LogicalResult {
      if (op.getCausal())
        return success();
      return op.emitError() << kWhy
                            << "this attention sees what comes after a position; with `causal` it does not";
    };
    for (Operation &op : block)
      if (failed(TypeSwitch<Operation *, LogicalResult>(&op).Case<AttentionOp, QkvAttentionOp>(check).Default(
              success())))
        return failure();
    return success();
  }

  /// What belongs to tokens is, whatever they are.
  bool isKnown(BlockArgument input) const {
    StringRef name = inputName(function, input.getArgNumber());
    std::optional<proto::Input::Filling> filling = FillingOf({name.data(), name.size()});
    bool isLengths = filling == proto::Input::LENGTHS;
    if (!filling || !IsOfTokens(*filling) || filling == proto::Input::TARGETS ||
        filling == proto::Input::LABELS)
      return false;
    Type element = tensorTypeOf(input).getElementType();
    bool isTruth = element.isInteger(1) && filling == proto::Input::ATTENTION_MASK;
    ArrayRef<int64_t> shape = tensorTypeOf(tokens).getShape();
    return (isTruth || element.isInteger(32) || element.isInteger(64)) &&
           tensorTypeOf(input).getShape() == (isLengths ? shape.drop_back() : shape);
  }

  /// What is not read goes; what is left is known when a text is continued.
  LogicalResult checkInputs() {
    llvm::BitVector unused(function.getNumArguments());
    for (BlockArgument input : function.getArguments()) {
      StringRef name = inputName(function, input.getArgNumber());
      if (input.use_empty()) {
        unused.set(input.getArgNumber());
        continue;
      }
      if (!isKnown(input) && !valueOfInput(function, input.getArgNumber()))
        return function.emitError() << kWhy << "nothing says what input '" << name
                                    << "' is then; known are tokens, 'positions', 'segments', 'lengths' and "
                                    << "'attention_mask' of integers, and constants with a value";
    }
    if (unused.test(tokens.getArgNumber()))
      return function.emitError() << kWhy << "the logits do not depend on 'tokens'";
    return function.eraseArguments(unused);
  }

  func::FuncOp function;
  Block &block;
  BlockArgument tokens;
};

struct MakeSampleStepPass : impl::MakeSampleStepPassBase<MakeSampleStepPass> {
  void runOnOperation() override {
    auto forward = getOperation().lookupSymbol<func::FuncOp>(mlir::ft::kForwardFunction);
    if (!forward || !forward.getBody().hasOneBlock() || forward.getNumResults() == 0) {
      getOperation().emitError("there is no function @forward of one block that returns the loss");
      return signalPassFailure();
    }
    if (failed(SampleStep(copyWithoutDropout(forward, mlir::ft::kSampleStepFunction)).make()))
      signalPassFailure();
  }
};

} // namespace
} // namespace ft::compiler
