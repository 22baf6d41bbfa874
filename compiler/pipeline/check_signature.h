// The inputs and outputs of a model.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ft::compiler {

/// Sizes of a vocabulary, of a dimension.
inline constexpr int64_t kMaxExtent = int64_t{1} << 31;

/// Emits an error at `forward` when it is neither (tokens: tensor<BxTxi32>, targets: the same) nor a function
/// of inputs that ft.input names, of types that data can have, [batch, ...] but for constants; when it does
/// not return the loss, one f32 scalar, first, and f32 scalars that ft.output names behind it; or has no
/// body.
llvm::LogicalResult checkSignature(mlir::func::FuncOp forward);

} // namespace ft::compiler
