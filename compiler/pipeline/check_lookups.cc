#include "compiler/pipeline/check_lookups.h"

#include "compiler/pipeline/check_signature.h"
#include "dialects/ft/composites.h"
#include "dialects/ft/dialect.h"
#include "dialects/ft/elementwise.h"
#include "dialects/ft/signature.h"
#include "llvm/ADT/SetVector.h"

#include <optional>

namespace ft::compiler {

using namespace mlir;
using namespace mlir::ft;

namespace {

/// An operand by which an op chooses among rows or classes, or says how many of them count.
struct Choice {
  Operation *op;
  Value ids;
  int64_t rows;
  bool isTarget; // negative: the loss leaves it out
};

int64_t extentOf(Value value, bool last) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(value.getType()).getShape();
  return last ? shape.back() : shape.front();
}

/// From 0 to the positions.
Choice lengthsOf(Operation *op, Value lengths, Value out) {
  return {op, lengths, cast<RankedTensorType>(out.getType()).getDimSize(1) + 1, false};
}

std::optional<Choice> choiceOf(Operation &op) {
  if (auto embedding = dyn_cast<EmbeddingOp>(op))
    return Choice{&op, embedding.getIds(), extentOf(embedding.getTable(), false), false};
  if (auto loss = dyn_cast<CrossEntropyOp>(op))
    return Choice{&op, loss.getTargets(), extentOf(loss.getLogits(), true), true};
  if (auto loss = dyn_cast<LinearCrossEntropyOp>(op))
    return Choice{&op, loss.getTargets(), extentOf(loss.getWeight(), false), true};
  if (auto attention = dyn_cast<AttentionOp>(op); attention && attention.getLengths())
    return lengthsOf(attention, attention.getLengths(), attention.getOut());
  if (auto attention = dyn_cast<QkvAttentionOp>(op); attention && attention.getLengths())
    return lengthsOf(attention, attention.getLengths(), attention.getOut());
  return std::nullopt;
}

/// Those of a function, in order; inside of a composite that it calls, by operands of the call.
SmallVector<Choice> choicesOf(func::FuncOp function) {
  SmallVector<Choice> choices;
  for (Operation &op : function.getBody().front()) {
    if (std::optional<Choice> choice = choiceOf(op))
      choices.push_back(*choice);
    auto call = dyn_cast<CallOp>(op);
    for (Choice choice : call ? choicesOf(calleeOf(call)) : SmallVector<Choice>())
      for (BlockArgument argument : sourcesOfIds(choice.ids).inputs)
        choices.push_back(
            {choice.op, call->getOperand(argument.getArgNumber()), choice.rows, choice.isTarget});
  }
  return choices;
}

bool holdsIds(BlockArgument input) {
  Type element = getElementTypeOrSelf(input);
  return element.isInteger(32) || element.isInteger(64);
}

/// The rows of the table in which the tokens are looked up, unless the module says it; 0 when nothing is
/// filled by tokens, as `targets` that nothing chooses by.
FailureOr<int64_t> findVocabulary(ModuleOp module, func::FuncOp forward, ArrayRef<Choice> choices) {
  if (Attribute attr = module->getAttr(kVocabSizeAttr)) {
    auto size = dyn_cast<IntegerAttr>(attr);
    if (!size || !size.getType().isInteger(64) || size.getInt() < 1 || size.getInt() >= kMaxExtent)
      return module.emitError() << "'" << kVocabSizeAttr << "' is " << attr << "; expected a positive i64";
    return size.getInt();
  }
  BlockArgument tokens = findTokens(forward);
  if (!tokens || !holdsIds(tokens))
    tokens = findInput(forward, kTargetsInput);
  if (!tokens || !holdsIds(tokens))
    return 0;
  for (const Choice &choice : choices) {
    if (!llvm::is_contained(sourcesOfIds(choice.ids).inputs, tokens))
      continue;
    module->setAttr(kVocabSizeAttr, Builder(module.getContext()).getI64IntegerAttr(choice.rows));
    return choice.rows;
  }
  StringRef name = inputName(forward, tokens.getArgNumber());
  if (name == kInputIdsInput || name == kTargetsInput) // numbers, not ids
    return 0;
  return forward.emitError()
         << "no ft.embedding looks up the tokens, so the vocabulary is unknown; set the module's attribute '"
         << kVocabSizeAttr << "'";
}

/// Inputs with what is known of their names.
SmallVector<ModelInput> namedInputs(func::FuncOp forward, int64_t vocabulary) {
  SmallVector<ModelInput> inputs;
  BlockArgument counted = countedInput(forward), tokens = findTokens(forward);
  for (BlockArgument argument : forward.getArguments()) {
    unsigned number = argument.getArgNumber();
    ModelInput &input = inputs.emplace_back();
    input.name = inputName(forward, number).str();
    input.type = cast<RankedTensorType>(argument.getType());
    input.isConstant = isConstantInput(forward, number);
    input.value = valueOfInput(forward, number);
    input.isCounted = input.mayBeLeftOut = argument == counted;
    if (holdsIds(argument) && (argument == tokens || input.name == kTargetsInput))
      input.idsBelow = vocabulary;
  }
  return inputs;
}

/// Ids of tokens are below the vocabulary, which has to fit; those of other inputs are below what they choose
/// among.
LogicalResult checkChoice(const Choice &choice, func::FuncOp forward, MutableArrayRef<ModelInput> inputs) {
  auto refuse = [&](int64_t count) {
    return choice.op->emitOpError() << "chooses among " << choice.rows << " but its ids go from 0 to "
                                    << count - 1;
  };
  IdSources sources = sourcesOfIds(choice.ids);
  BlockArgument tokens = findTokens(forward);
  if (sources.below > choice.rows)
    return refuse(sources.below);
  for (BlockArgument argument : sources.inputs) {
    ModelInput &input = inputs[argument.getArgNumber()];
    if (!holdsIds(argument)) { // truth values
      if (choice.rows < 2)
        return refuse(2);
      continue;
    }
    bool isOfTokens = argument == tokens || input.name == kTargetsInput;
    if (isOfTokens && input.idsBelow > choice.rows)
      return refuse(input.idsBelow);
    if (!isOfTokens)
      input.idsBelow = input.idsBelow == 0 ? choice.rows : std::min(input.idsBelow, choice.rows);
  }
  return success();
}

/// Whether ids are computed of an input, and nothing on the way chooses what stands in for negative ones, as
/// a decoder does that takes labels.
bool mayBeNegativeWith(Value ids, BlockArgument input) {
  llvm::SetVector<Value> reached;
  reached.insert(ids);
  for (size_t i = 0; i < reached.size(); ++i) {
    if (reached[i] == input)
      return true;
    Operation *op = reached[i].getDefiningOp();
    if (op && !isa<ClampOp, MaximumOp, SelectOp>(op))
      reached.insert(op->operand_begin(), op->operand_end());
  }
  return false;
}

} // namespace

LogicalResult checkLookups(ModuleOp module, func::FuncOp forward) {
  SmallVector<Choice> choices = choicesOf(forward);
  FailureOr<int64_t> vocabulary = findVocabulary(module, forward, choices);
  if (failed(vocabulary))
    return failure();
  SmallVector<ModelInput> inputs = namedInputs(forward, *vocabulary);
  llvm::SmallDenseSet<unsigned> targets, others;
  for (const Choice &choice : choices) {
    if (failed(checkChoice(choice, forward, inputs)))
      return failure();
    for (BlockArgument argument : sourcesOfIds(choice.ids).inputs) {
      (choice.isTarget ? targets : others).insert(argument.getArgNumber());
      inputs[argument.getArgNumber()].isShifted |= choice.isTarget && !isWholeInput(choice.ids);
    }
  }
  for (BlockArgument argument : forward.getArguments()) // ids may be computed of it
    for (Choice choice : choices)
      if (holdsIds(argument) && choice.ids.getParentBlock() == argument.getOwner()) {
        if (choice.isTarget && dependsOn(choice.ids, argument))
          targets.insert(argument.getArgNumber());
        if (!choice.isTarget && mayBeNegativeWith(choice.ids, argument))
          others.insert(argument.getArgNumber());
      }
  // What a loss leaves out must not choose a row elsewhere.
  for (auto [number, input] : llvm::enumerate(inputs)) {
    if (targets.contains(number) && !others.contains(number) && input.idsBelow > 0)
      input.mayBeLeftOut = true;
    if (others.contains(number) || input.idsBelow == 0)
      input.mayBeLeftOut = input.isCounted = false;
  }
  setInputs(module, inputs);
  return success();
}

} // namespace ft::compiler
