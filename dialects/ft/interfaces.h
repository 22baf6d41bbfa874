// Interfaces of the ft dialect's ops; their contracts are in interfaces.td.
#pragma once

#include <cstdint>

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpDefinition.h"

namespace mlir::ft {

// Bytes of all operands and results that are ranked tensors of static shape, each counted once.
uint64_t bytesOfOperandsAndResults(Operation *op);

// Marks ops with few FLOPs for the bytes of their results. MLIR builds op classes from such traits, so they
// cannot name their heirs as friends.
template <typename ConcreteType>
// NOLINTNEXTLINE(bugprone-crtp-constructor-accessibility)
class CheapToRecompute : public OpTrait::TraitBase<ConcreteType, CheapToRecompute> {};

} // namespace mlir::ft

#include "dialects/ft/interfaces.h.inc"
