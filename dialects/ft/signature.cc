#include "dialects/ft/signature.h"

#include "dialects/ft/dialect.h"
#include "dialects/ft/elementwise.h"
#include "dialects/ft/layer.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::ft {
namespace {

StringRef textOf(Attribute attribute) {
  auto text = dyn_cast_or_null<StringAttr>(attribute);
  return text ? text.getValue() : StringRef();
}

bool isInteger(Value value) { return isa<IntegerType>(getElementTypeOrSelf(value)); }

/// The operands that elements of a result are taken from; none when it is computed.
SmallVector<Value> movedFrom(Operation *op) {
  if (auto gather = dyn_cast<GatherElementsOp>(op))
    return {gather.getX()};
  if (op->hasTrait<MovesElements>())
    return SmallVector<Value>(op->getOperands());
  if (isa<CopyOp>(op) || (isa<ConvertOp>(op) && isInteger(op->getOperand(0))))
    return {op->getOperand(0)};
  return {};
}

/// The number that `value` is everywhere, as an integer.
std::optional<int64_t> constantOf(Value value) {
  FillOp fill = fillOf(value);
  return fill ? std::optional(static_cast<int64_t>(fill.getValue().convertToDouble())) : std::nullopt;
}

bool dependsOn(Value value, Value argument, llvm::SmallDenseSet<Value> &seen) {
  if (value == argument)
    return true;
  Operation *op = value.getDefiningOp();
  return op && seen.insert(value).second &&
         llvm::any_of(op->getOperands(), [&](Value operand) { return dependsOn(operand, argument, seen); });
}

void addSources(Value ids, IdSources &sources, llvm::SmallDenseSet<Value> &seen);

/// What is chosen by the ids themselves, such as others for negative ones, is computed: which of them are
/// left is not known.
void addSourcesOfSelect(SelectOp select, IdSources &sources, llvm::SmallDenseSet<Value> &seen) {
  auto chooses = [&](Value ids) {
    llvm::SmallDenseSet<Value> visited;
    return dependsOn(select->getOperand(0), ids, visited);
  };
  for (Value branch : select->getOperands().drop_front()) {
    IdSources ids;
    addSources(branch, ids, seen);
    bool areConstant = ids.inputs.empty() && !ids.isComputed;
    if (!areConstant && (chooses(branch) || llvm::any_of(ids.inputs, chooses))) {
      sources.isComputed = true;
      continue;
    }
    sources.below = std::max(sources.below, ids.below);
    sources.isComputed |= ids.isComputed;
    llvm::append_range(sources.inputs, ids.inputs);
  }
}

void addSources(Value ids, IdSources &sources, llvm::SmallDenseSet<Value> &seen) {
  if (!seen.insert(ids).second)
    return;
  if (auto argument = dyn_cast<BlockArgument>(ids)) {
    sources.inputs.push_back(argument);
    return;
  }
  Operation *op = ids.getDefiningOp();
  if (isa<IotaOp>(op)) {
    sources.below = std::max(sources.below, cast<RankedTensorType>(ids.getType()).getNumElements());
    return;
  }
  if (std::optional<int64_t> number = constantOf(ids)) { // below 0 it leaves a target out
    sources.below = std::max(sources.below, *number + 1);
    return;
  }
  if (auto select = dyn_cast<SelectOp>(op))
    return addSourcesOfSelect(select, sources, seen);
  SmallVector<Value> from = movedFrom(op);
  if (from.empty())
    sources.isComputed = true;
  for (Value value : from)
    addSources(value, sources, seen);
}

/// The input of which all ids are taken as they stand, one that data fills; else null.
BlockArgument onlyInput(func::FuncOp function, Value ids) {
  IdSources sources = sourcesOfIds(ids);
  bool isOne = sources.inputs.size() == 1 && sources.below == 0 && !sources.isComputed &&
               !isConstantInput(function, sources.inputs.front().getArgNumber());
  return isOne ? sources.inputs.front() : BlockArgument();
}

/// Whether two values are computed alike.
bool areAlike(Value a, Value b) {
  if (a == b)
    return true;
  Operation *x = a.getDefiningOp(), *y = b.getDefiningOp();
  if (!x || !y || cast<OpResult>(a).getResultNumber() != cast<OpResult>(b).getResultNumber())
    return false;
  auto areEqual = [](Value left, Value right) { return success(areAlike(left, right)); };
  return OperationEquivalence::isEquivalentTo(x, y, areEqual, /*markEquivalent=*/nullptr,
                                              OperationEquivalence::IgnoreLocations |
                                                  OperationEquivalence::IgnoreDiscardableAttrs);
}

/// What all cross entropies of a function read; null where there are none, or they differ.
Value onlyTargets(func::FuncOp function) {
  Value all;
  for (Operation &op : function.getBody().front()) {
    Value targets = targetsOf(&op);
    if (targets && all && !areAlike(targets, all))
      return {};
    if (targets && !all)
      all = targets;
  }
  return all;
}

} // namespace

Value targetsOf(Operation *loss) {
  return TypeSwitch<Operation *, Value>(loss)
      .Case<CrossEntropyOp, LinearCrossEntropyOp>([](auto op) { return op.getTargets(); })
      .Default(Value());
}

Operation *crossEntropyOf(Value loss) {
  Operation *op = loss.getDefiningOp();
  while (isa_and_present<ReshapeOp>(op))
    op = op->getOperand(0).getDefiningOp();
  return isa_and_present<CrossEntropyOp, LinearCrossEntropyOp>(op) ? op : nullptr;
}

bool namesInputs(func::FuncOp function) {
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (function.getArgAttr(i, kInputAttr))
      return true;
  return false;
}

StringRef inputName(func::FuncOp function, unsigned argument) {
  if (namesInputs(function))
    return textOf(function.getArgAttr(argument, kInputAttr));
  return argument == 0 ? StringRef(kTokensInput) : argument == 1 ? StringRef(kTargetsInput) : StringRef();
}

BlockArgument findInput(func::FuncOp function, StringRef name) {
  for (BlockArgument argument : function.getArguments())
    if (inputName(function, argument.getArgNumber()) == name)
      return argument;
  return {};
}

BlockArgument findTokens(func::FuncOp function) {
  BlockArgument tokens = findInput(function, kTokensInput);
  return tokens ? tokens : findInput(function, kInputIdsInput);
}

bool isConstantInput(func::FuncOp function, unsigned argument) {
  return static_cast<bool>(function.getArgAttr(argument, kConstantAttr));
}

DenseElementsAttr valueOfInput(func::FuncOp function, unsigned argument) {
  return dyn_cast_if_present<DenseElementsAttr>(function.getArgAttr(argument, kConstantAttr));
}

StringRef outputName(func::FuncOp function, unsigned result) {
  return textOf(function.getResultAttr(result, kOutputAttr));
}

int64_t batchOf(func::FuncOp function) {
  for (BlockArgument argument : function.getArguments()) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (type && type.getRank() > 0 && !isConstantInput(function, argument.getArgNumber()))
      return type.getDimSize(0);
  }
  return 0;
}

BlockArgument sequenceInput(func::FuncOp function) {
  for (BlockArgument input : {findTokens(function), findInput(function, kTargetsInput)})
    if (input)
      if (auto type = dyn_cast<RankedTensorType>(input.getType()); type && type.getRank() == 2)
        return input;
  return {};
}

IdSources sourcesOfIds(Value ids) {
  IdSources sources;
  llvm::SmallDenseSet<Value> seen;
  addSources(ids, sources, seen);
  return sources;
}

bool isWholeInput(Value ids) {
  while (Operation *op = ids.getDefiningOp()) {
    if (!isa<ReshapeOp, CopyOp>(op) && !(isa<ConvertOp>(op) && isInteger(op->getOperand(0))))
      return false;
    ids = op->getOperand(0);
  }
  return true;
}

bool dependsOn(Value value, Value other) {
  llvm::SmallDenseSet<Value> seen;
  return dependsOn(value, other, seen);
}

Value countedTargets(func::FuncOp function) {
  if (Operation *loss = crossEntropyOf(function.getBody().front().getTerminator()->getOperand(0))) {
    Value targets = targetsOf(loss);
    bool isData = llvm::any_of(function.getArguments(), [&](BlockArgument input) {
      return !isConstantInput(function, input.getArgNumber()) && dependsOn(targets, input);
    });
    return isData ? targets : Value();
  }
  // Of another loss what is called so counts, or what all cross entropies in it take of that. Without a
  // vocabulary they are numbers, of which -1 is one.
  BlockArgument input = findInput(function, kTargetsInput);
  if (!input || !getElementTypeOrSelf(input).isInteger(32) ||
      !function->getParentOfType<ModuleOp>()->hasAttr(kVocabSizeAttr))
    return {};
  Value targets = onlyTargets(function);
  return targets && onlyInput(function, targets) == input ? targets : Value(input);
}

BlockArgument countedInput(func::FuncOp function) {
  Value targets = countedTargets(function);
  return targets ? onlyInput(function, targets) : BlockArgument();
}

void setInputs(ModuleOp module, ArrayRef<ModelInput> inputs) {
  Builder builder(module.getContext());
  auto row = [&](const ModelInput &input) -> Attribute {
    auto flag = [&](StringRef name, bool value) {
      return builder.getNamedAttr(name, builder.getBoolAttr(value));
    };
    SmallVector<NamedAttribute> members(
        {builder.getNamedAttr("name", builder.getStringAttr(input.name)),
         builder.getNamedAttr("type", TypeAttr::get(input.type)), flag("constant", input.isConstant),
         builder.getNamedAttr("ids_below", builder.getI64IntegerAttr(input.idsBelow)),
         flag("may_be_left_out", input.mayBeLeftOut), flag("counted", input.isCounted)});
    if (input.isShifted)
      members.push_back(flag("shifted", true));
    if (input.value)
      members.push_back(builder.getNamedAttr("value", input.value));
    return builder.getDictionaryAttr(members);
  };
  module->setAttr(kInputsAttr, builder.getArrayAttr(llvm::map_to_vector(inputs, row)));
}

std::optional<SmallVector<ModelInput>> inputsOf(ModuleOp module) {
  auto rows = module->getAttrOfType<ArrayAttr>(kInputsAttr);
  if (!rows)
    return std::nullopt;
  SmallVector<ModelInput> inputs;
  for (Attribute attribute : rows) {
    auto row = dyn_cast<DictionaryAttr>(attribute);
    auto name = row ? row.getAs<StringAttr>("name") : StringAttr();
    auto type = row ? row.getAs<TypeAttr>("type") : TypeAttr();
    auto below = row ? row.getAs<IntegerAttr>("ids_below") : IntegerAttr();
    if (!name || !below || !type || !isa<RankedTensorType>(type.getValue()))
      return std::nullopt;
    auto flag = [&](StringRef flag) {
      auto value = row.getAs<BoolAttr>(flag);
      return value && value.getValue();
    };
    inputs.push_back({.name = name.getValue().str(),
                      .type = cast<RankedTensorType>(type.getValue()),
                      .isConstant = flag("constant"),
                      .value = row.getAs<DenseElementsAttr>("value"),
                      .idsBelow = below.getInt(),
                      .mayBeLeftOut = flag("may_be_left_out"),
                      .isCounted = flag("counted"),
                      .isShifted = flag("shifted")});
  }
  return inputs;
}

} // namespace mlir::ft
