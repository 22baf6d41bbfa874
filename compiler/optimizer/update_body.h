// The parts of an update that are computed element by element, as functions that ft.update runs.
#pragma once

#include "compiler/optimizer/rules.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ft::compiler {

struct UpdateBody {
  mlir::OwningOpRef<mlir::func::FuncOp> function; // as ft.update describes it
  std::string scalars;                            // the formulas of ft.update_scalars
  std::vector<std::string_view> states;           // that the function takes
};

/// What a body is given of the gradient: the mean over ranks, or their sum, of which it makes the mean.
enum class Reduced { mean, sum };

/// What becomes of the parameter. InvalidArgument says what is wrong with the formulas.
absl::StatusOr<UpdateBody> makeUpdateBody(mlir::MLIRContext &context, std::string_view name,
                                          const Update &update, const Hyperparameters &hyperparameters,
                                          Reduced gradient);

/// Of an update that looks at parameters whole: the direction before it does.
absl::StatusOr<UpdateBody> makeDirectionBody(mlir::MLIRContext &context, std::string_view name,
                                             const Update &update, const Hyperparameters &hyperparameters,
                                             Reduced gradient);

} // namespace ft::compiler
