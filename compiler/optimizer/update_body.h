// Formulas of an optimizer as a function of primitives.
#pragma once

#include "compiler/optimizer/rules.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ft::compiler {

struct UpdateBody {
  mlir::OwningOpRef<mlir::func::FuncOp> function; // as ft.update describes it
  std::string scalars;                            // the formulas of ft.update_scalars
};

/// InvalidArgument says what is wrong with the formulas.
absl::StatusOr<UpdateBody> makeUpdateBody(mlir::MLIRContext &context, std::string_view name,
                                          const Update &update, const Hyperparameters &hyperparameters);

} // namespace ft::compiler
