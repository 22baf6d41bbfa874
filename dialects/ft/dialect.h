// The dialect ft: transformers and their training step as values on whole tensors. The ops are listed in
// ops.td, and docs/reference/ft.md is generated from it. This is the header to include; the others are parts
// of it.
#pragma once

#include <cstdint>

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/ft/interfaces.h"
#include "dialects/ft/layer.h"
#include "dialects/ft/text.h"
#include "runtime/base/flat_layout.h"

namespace mlir::ft {

using ::ft::kAccumulatorWords;
using ::ft::kBlockElements;

// Most dimensions that a kernel takes.
inline constexpr int64_t kMaxRank = 8;

// The state of loss scaling: scale, good steps in a row, skipped steps for which it did not back off.
inline constexpr int64_t kScalerNumbers = 3;

// Bytes of an element in memory: a truth value takes one.
uint64_t elementBytes(Type element);

// True for a ranked tensor of at most kMaxRank dimensions, all static and positive.
bool isKernelShape(Type type);

} // namespace mlir::ft

#include "dialects/ft/dialect.h.inc"
#include "dialects/ft/enums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/ft/attributes.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/ft/types.h.inc"

#define GET_OP_CLASSES
#include "dialects/ft/ops.h.inc"

namespace mlir::ft {

// The fill that `value` is everywhere, in whatever type and shape; null where it is no copy of one.
FillOp fillOf(Value value);

} // namespace mlir::ft
