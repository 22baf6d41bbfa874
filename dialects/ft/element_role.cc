// Which results are not activations: statistics, and gradients of parameters, which are rounded once to the
// type in which they are reduced.
#include "dialects/ft/dialect.h"

namespace mlir::ft {

ElementRole elementRole(Operation *op, unsigned index) {
  if (auto precision = dyn_cast<PrecisionOpInterface>(op))
    return precision.getElementRole(index);
  return ElementRole::Activation;
}

namespace {

// Results from `first` on are sums over rows.
ElementRole roundedFrom(unsigned first, unsigned index) {
  return index >= first ? ElementRole::Rounded : ElementRole::Activation;
}

} // namespace

//===----------------------------------------------------------------------===//
// Statistics and state
//===----------------------------------------------------------------------===//

ElementRole InputOp::getElementRole(unsigned) { return ElementRole::Statistic; }

ElementRole AttentionOp::getElementRole(unsigned index) {
  return index == 1 ? ElementRole::Statistic : ElementRole::Activation; // lse
}

ElementRole QkvAttentionOp::getElementRole(unsigned index) {
  return index == 1 ? ElementRole::Statistic : ElementRole::Activation; // lse
}

ElementRole LoadStateOp::getElementRole(unsigned) { return ElementRole::Statistic; }

ElementRole RotaryTableOp::getElementRole(unsigned) { return ElementRole::Statistic; }

ElementRole LossCountOp::getElementRole(unsigned) { return ElementRole::Statistic; }

ElementRole UpdateScalarsOp::getElementRole(unsigned) { return ElementRole::Statistic; }

//===----------------------------------------------------------------------===//
// Sums over rows
//===----------------------------------------------------------------------===//

// With transpose_a a product sums over rows: the gradient of a weight.
ElementRole MatmulOp::getElementRole(unsigned) {
  return getTransposeA() ? ElementRole::Rounded : ElementRole::Activation;
}

ElementRole EmbeddingGradOp::getElementRole(unsigned) { return ElementRole::Rounded; }

ElementRole LinearCrossEntropyGradOp::getElementRole(unsigned index) { return roundedFrom(1, index); }

ElementRole LinearCrossEntropyLossGradOp::getElementRole(unsigned index) { return roundedFrom(2, index); }

//===----------------------------------------------------------------------===//
// Constants, copies, sums of gradients
//===----------------------------------------------------------------------===//

ElementRole FillOp::getElementRole(unsigned) { return ElementRole::Rounded; }

ElementRole CopyOp::getElementRole(unsigned) { return ElementRole::Rounded; }

} // namespace mlir::ft
