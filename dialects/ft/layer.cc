#include "dialects/ft/layer.h"

namespace mlir::ft {

StringAttr getLayer(Operation *op) { return op->getAttrOfType<StringAttr>(kLayerAttr); }

StringAttr getPhase(Operation *op) { return op->getAttrOfType<StringAttr>(kPhaseAttr); }

bool isInPhase(Operation *op, llvm::StringRef phase) {
  StringAttr own = getPhase(op);
  return own && own.getValue() == phase;
}

void setLayer(Operation *op, StringAttr layer) {
  if (layer)
    op->setAttr(kLayerAttr, layer);
  else
    op->removeAttr(kLayerAttr);
}

void setPhase(Operation *op, llvm::StringRef phase) {
  if (phase.empty())
    op->removeAttr(kPhaseAttr);
  else
    op->setAttr(kPhaseAttr, StringAttr::get(op->getContext(), phase));
}

} // namespace mlir::ft
