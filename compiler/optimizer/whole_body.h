// The part of an update that looks at a parameter whole, as composites.
#pragma once

#include "compiler/optimizer/formulas.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ft::compiler {

/// What a composite is made for.
struct WholeBody {
  // A state that the parameter has: its part of what the unit has.
  struct Part {
    const OptimizerState *state;
    mlir::RankedTensorType unit; // [elements], of all parameters of the unit
    int64_t begin, elements;
  };
  std::string_view rule;
  mlir::RankedTensorType parameter;
  llvm::SmallVector<Part> parts;
  llvm::ArrayRef<Assignment> formulas;
  llvm::ArrayRef<std::string> scalars; // formulas of ft.update_scalars, behind that of the coefficient

  /// Whether formulas read the weights.
  bool takesParameter() const;
  /// Equal for equal composites of a rule.
  std::string key() const;
};

/// (direction, parameter where it takes it, of each state all that the unit has, the result of
/// ft.update_scalars) -> (direction, of each state the part of the parameter). Parts stay what they were
/// where the coefficient of the gradient is NaN. InvalidArgument says what is wrong with the formulas.
absl::StatusOr<mlir::OwningOpRef<mlir::func::FuncOp>> makeWholeBody(const WholeBody &body,
                                                                    const Hyperparameters &hyperparameters);

} // namespace ft::compiler
