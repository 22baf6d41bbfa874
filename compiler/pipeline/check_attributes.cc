#include "compiler/pipeline/check_attributes.h"

#include "dialects/ft/dialect.h"
#include "dialects/ft/facts.h"
#include "dialects/ft/signature.h"
#include "mlir/IR/BuiltinTypes.h"

#include <string_view>
#include <vector>

#include "runtime/base/did_you_mean.h"

namespace ft::compiler {

using namespace mlir;
using namespace mlir::ft;

namespace {

enum class Kind {
  Text,
  Batch,    // the first extent of inputs
  Sequence, // the second of the tokens
  Checked,  // elsewhere
};

struct Known {
  StringLiteral name;
  Kind kind;
};

constexpr Known kKnown[] = {
    {kModelAttr, Kind::Text},        {kPresetAttr, Kind::Text},    {kBasePrefixAttr, Kind::Text},
    {kVocabSizeAttr, Kind::Checked}, {kFactsAttr, Kind::Checked},  {kBatchAttr, Kind::Batch},
    {kSeqLenAttr, Kind::Sequence},   {kInputsAttr, Kind::Checked}, // made anew
    {kTokenizerAttr, Kind::Text},
};

LogicalResult checkExtent(ModuleOp module, NamedAttribute attr, func::FuncOp forward, BlockArgument input,
                          unsigned dimension) {
  if (!input)
    return module.emitError() << "'" << attr.getName().getValue()
                              << "' is given, but no input of @forward has sequences of tokens";
  auto type = cast<RankedTensorType>(input.getType());
  auto size = dyn_cast<IntegerAttr>(attr.getValue());
  int64_t wanted = type.getDimSize(dimension);
  if (size && size.getType().isInteger(64) && size.getInt() == wanted)
    return success();
  return module.emitError() << "'" << attr.getName().getValue() << "' is " << attr.getValue()
                            << ", but @forward takes " << inputName(forward, input.getArgNumber()) << " of "
                            << type << "; expected " << wanted << " : i64";
}

BlockArgument batchInput(func::FuncOp forward) {
  return *llvm::find_if(forward.getArguments(), [&](BlockArgument argument) {
    return !isConstantInput(forward, argument.getArgNumber());
  });
}

LogicalResult checkOne(ModuleOp module, NamedAttribute attr, Kind kind, func::FuncOp forward) {
  switch (kind) {
  case Kind::Text:
    if (isa<StringAttr>(attr.getValue()))
      return success();
    return module.emitError() << "'" << attr.getName().getValue() << "' is " << attr.getValue()
                              << "; expected a text";
  case Kind::Batch:
    return checkExtent(module, attr, forward, batchInput(forward), 0);
  case Kind::Sequence:
    return checkExtent(module, attr, forward, sequenceInput(forward), 1);
  case Kind::Checked:
    return success();
  }
  return success();
}

} // namespace

LogicalResult checkOpAttributes(Operation &op) {
  for (NamedAttribute attr : op.getDiscardableAttrs()) {
    StringRef name = attr.getName().getValue();
    if (name == kLayerAttr && isa<StringAttr>(attr.getValue()))
      continue;
    if (name == kLayerAttr)
      return op.emitOpError() << "layer is " << attr.getValue() << "; expected a text";
    if (name.contains('.') && !name.starts_with("ft.")) // of somebody else
      continue;
    std::vector<std::string_view> names = {{kLayerAttr.data(), kLayerAttr.size()}};
    for (StringAttr known : op.getName().getAttributeNames())
      names.emplace_back(known.getValue().data(), known.getValue().size());
    return op.emitOpError() << UnknownName("attribute", {name.data(), name.size()}, names);
  }
  return success();
}

LogicalResult checkModuleAttributes(ModuleOp module, func::FuncOp forward) {
  for (NamedAttribute attr : module->getAttrs()) {
    StringRef name = attr.getName().getValue();
    if (!name.starts_with("ft."))
      continue;
    const Known *known = llvm::find_if(kKnown, [&](const Known &row) { return row.name == name; });
    if (known == std::end(kKnown)) {
      std::vector<std::string_view> names;
      for (const Known &row : kKnown)
        names.emplace_back(row.name.data(), row.name.size());
      return module.emitError() << UnknownName("attribute of a model", {name.data(), name.size()}, names);
    }
    if (failed(checkOne(module, attr, known->kind, forward)))
      return failure();
  }
  return success();
}

} // namespace ft::compiler
