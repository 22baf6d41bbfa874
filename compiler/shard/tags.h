// What an inserted op belongs to.
#pragma once

#include "dialects/ft/layer.h"

namespace ft::compiler {

/// Gives an op the layer and phase of another.
inline void tagLike(mlir::Operation *op, mlir::Operation *like) {
  mlir::ft::setLayer(op, mlir::ft::getLayer(like));
  mlir::StringAttr phase = mlir::ft::getPhase(like);
  mlir::ft::setPhase(op, phase ? phase.getValue() : "");
}

} // namespace ft::compiler
