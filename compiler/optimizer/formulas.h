// Formulas of optimizers as ops of the dialect.
#pragma once

#include "compiler/optimizer/rules.h"
#include "dialects/ft/dialect.h"
#include "runtime/base/expression.h"
#include "llvm/ADT/StringMap.h"

namespace ft::compiler {

struct Assignment {
  std::string name;
  Expression value;
};

/// InvalidArgument says what is wrong with the text.
absl::StatusOr<std::vector<Assignment>> parseFormulas(std::string_view formulas);

/// Appends the numbers of the step that are not known now, each once: formulas of ft.update_scalars.
absl::Status findStepScalars(llvm::ArrayRef<Assignment> assignments, const Hyperparameters &hyperparameters,
                             std::vector<std::string> &scalars);

/// The attribute `formulas` of ft.update_scalars: the coefficient of the gradient, then these.
std::string stepScalarFormulas(llvm::ArrayRef<std::string> scalars);

/// Makes ops of assignments, at `builder`. Operands that are no scalars are repeated where they have an
/// extent of 1 and another has not.
class FormulaBuilder {
public:
  /// What is no elementwise primitive; a null value: there is no such function.
  using Function = mlir::Value (*)(FormulaBuilder &formulas, llvm::StringRef name,
                                   llvm::ArrayRef<mlir::Value> operands);

  FormulaBuilder(mlir::OpBuilder &builder, const Hyperparameters &hyperparameters,
                 Function function = nullptr)
      : b(builder), loc(mlir::UnknownLoc::get(builder.getContext())), hyperparameters(hyperparameters),
        function(function) {}

  void set(llvm::StringRef name, mlir::Value value) { values[name] = value; }
  mlir::Value get(llvm::StringRef name) const { return values.lookup(name); }
  /// The value of a formula of findStepScalars.
  void setScalar(llvm::StringRef formula, mlir::Value value) { scalars[formula] = value; }

  /// Sets what is assigned. InvalidArgument says what is wrong.
  absl::Status run(llvm::ArrayRef<Assignment> assignments);

  mlir::OpBuilder &builder() { return b; }
  mlir::Value constant(double number);
  /// The elementwise primitive `name`; a null value: there is none of so many operands and nothing else.
  mlir::Value elementwise(llvm::StringRef name, llvm::ArrayRef<mlir::Value> operands);

private:
  absl::StatusOr<mlir::Value> valueOf(const Expression &expression);
  llvm::SmallVector<mlir::Value> alike(llvm::ArrayRef<mlir::Value> operands);

  mlir::OpBuilder &b;
  mlir::Location loc;
  const Hyperparameters &hyperparameters;
  Function function;
  llvm::StringMap<mlir::Value> values, scalars; // by name, by formula
};

} // namespace ft::compiler
