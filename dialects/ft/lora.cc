#include "dialects/ft/lora.h"

#include "mlir/IR/Builders.h"

namespace mlir::ft {

void setLora(ModuleOp module, const Lora &lora) {
  Builder builder(module.getContext());
  auto texts = [&](const std::vector<std::string> &names) {
    return builder.getStrArrayAttr(SmallVector<StringRef>(names.begin(), names.end()));
  };
  module->setAttr(kLoraAttr, builder.getDictionaryAttr(
                                 {builder.getNamedAttr("r", builder.getI64IntegerAttr(lora.rank)),
                                  builder.getNamedAttr("alpha", builder.getF64FloatAttr(lora.alpha)),
                                  builder.getNamedAttr("dropout", builder.getF64FloatAttr(lora.dropout)),
                                  builder.getNamedAttr("rslora", builder.getBoolAttr(lora.rslora)),
                                  builder.getNamedAttr("input_first", builder.getBoolAttr(lora.inputFirst)),
                                  builder.getNamedAttr("modules", texts(lora.modules)),
                                  builder.getNamedAttr("saved", texts(lora.saved))}));
}

std::optional<Lora> loraOf(ModuleOp module) {
  auto attr = module->getAttrOfType<DictionaryAttr>(kLoraAttr);
  if (!attr)
    return std::nullopt;
  auto rank = attr.getAs<IntegerAttr>("r");
  auto alpha = attr.getAs<FloatAttr>("alpha"), dropout = attr.getAs<FloatAttr>("dropout");
  auto rslora = attr.getAs<BoolAttr>("rslora"), inputFirst = attr.getAs<BoolAttr>("input_first");
  auto modules = attr.getAs<ArrayAttr>("modules"), saved = attr.getAs<ArrayAttr>("saved");
  if (!rank || !alpha || !dropout || !rslora || !inputFirst || !modules || !saved)
    return std::nullopt;
  Lora lora{rank.getInt(),
            alpha.getValueAsDouble(),
            dropout.getValueAsDouble(),
            rslora.getValue(),
            inputFirst.getValue(),
            {},
            {}};
  for (auto name : modules.getAsRange<StringAttr>())
    lora.modules.push_back(name.getValue().str());
  for (auto name : saved.getAsRange<StringAttr>())
    lora.saved.push_back(name.getValue().str());
  return lora;
}

} // namespace mlir::ft
