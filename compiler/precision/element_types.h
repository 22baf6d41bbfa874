// The types of a precision policy, and their place on units.
#pragma once

#include "dialects/ft/dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringSet.h"

#include <optional>

namespace ft::compiler {

struct ElementTypes {
  mlir::Type compute;    // activations, gathered parameters
  mlir::Type reduce;     // gradients of parameters, as they are reduced
  mlir::Type master;     // weights that the optimizer updates: f32, or the compute type
  mlir::Type accumulate; // sums of gradients over micro-steps: f32, or the compute type

  bool operator==(const ElementTypes &) const = default;

  /// Those of the results of `op`. What an optimizer makes of gradients, without the scale of the loss, may
  /// be too small for f16, and is bf16 then; the weights that it reads are those that are computed with.
  ElementTypes of(mlir::Operation *op) const;

  /// In which backward of `function` makes gradients of parameters: where they are added up over micro-steps
  /// before they are reduced, that of the sum.
  mlir::Type ofGradients(mlir::func::FuncOp function) const;
};

/// "fp32", "bf16" or "fp16"; null for any other text.
mlir::Type parseElementType(mlir::MLIRContext *context, llvm::StringRef name);

/// `type` with other elements: of a tensor, a flat buffer or a slice.
mlir::Type withElements(mlir::Type type, mlir::Type element);

/// Elements of a tensor, a flat buffer, a slice or an activation in host memory; null for other types.
mlir::Type elementsOf(mlir::Type type);

/// A float tensor that a precision policy may give another type: scalars are f32.
bool isRetyped(mlir::Type type);

/// Whether `function` adds something of units up over micro-steps, gradients or what they are reduced to.
bool accumulatesGradients(mlir::func::FuncOp function);

/// Names of units of parameters that are not trained.
llvm::StringSet<> frozenUnits(mlir::ModuleOp module);

/// What the attributes of a unit say.
ElementTypes elementTypesOf(mlir::ft::UnitOp unit);

} // namespace ft::compiler
