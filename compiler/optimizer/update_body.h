// Formulas of an optimizer as functions of primitives.
#pragma once

#include "compiler/optimizer/rules.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ft::compiler {

struct UpdateBody {
  mlir::OwningOpRef<mlir::func::FuncOp> function; // as ft.update describes it
  std::string scalars;                            // the formulas of ft.update_scalars
  std::vector<std::string_view> states;           // that the function takes
};

/// One, or, where formulas want whole matrices, two: what is to be orthogonalized (the direction of
/// ft.update), and what becomes of the parameter by it. InvalidArgument says what is wrong with the formulas.
absl::StatusOr<std::vector<UpdateBody>> makeUpdateBodies(mlir::MLIRContext &context, std::string_view name,
                                                         const Update &update,
                                                         const Hyperparameters &hyperparameters);

} // namespace ft::compiler
