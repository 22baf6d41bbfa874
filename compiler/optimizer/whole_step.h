// Inserts the part of an update that looks at parameters whole: a call of a composite for each of them.
#pragma once

#include "compiler/optimizer/whole_body.h"
#include "dialects/ft/composites.h"

namespace ft::compiler {

class WholeStep {
public:
  /// `update` looks at whole parameters. InvalidArgument says what is wrong with its formulas.
  static absl::StatusOr<WholeStep> create(std::string_view rule, const Update &update,
                                          const Hyperparameters &hyperparameters);

  /// The formulas of ft.update_scalars that it reads.
  std::string scalars() const;

  /// What becomes of the direction of the parameters that are packed in `pack`, packed like them. The states
  /// of their unit are read and written. `scalars` are null where there is nothing to read. InvalidArgument:
  /// a parameter for which the rule has no formulas, or what is wrong with those.
  absl::StatusOr<mlir::Value> insert(mlir::OpBuilder &builder, mlir::ft::PackOp pack, mlir::Value direction,
                                     mlir::Value scalars, mlir::SymbolTable &symbols);

  /// Whether it is ft.orthogonalize alone.
  bool orthogonalizes() const;

private:
  // A state of the unit, all of it, and the parts that become of it.
  struct UnitState {
    const OptimizerState *state;
    mlir::Value before;
    llvm::SmallVector<mlir::Value> after = {};
    int64_t used = 0; // elements of parameters so far
  };

  llvm::SmallVector<UnitState> load(mlir::OpBuilder &builder, mlir::ft::PackOp pack,
                                    mlir::SymbolTable &symbols) const;
  void store(mlir::OpBuilder &builder, mlir::ft::PackOp pack, llvm::ArrayRef<UnitState> unit,
             mlir::SymbolTable &symbols);
  absl::StatusOr<mlir::Value> direct(mlir::OpBuilder &builder, mlir::FlatSymbolRefAttr name,
                                     mlir::Value direction, mlir::Value scalars,
                                     llvm::MutableArrayRef<UnitState> unit, mlir::SymbolTable &symbols);
  mlir::func::FuncOp joinOf(mlir::TypeRange parts, mlir::SymbolTable &symbols);

  std::string rule;
  Hyperparameters hyperparameters;
  std::vector<OptimizerState> states;
  std::vector<Assignment> matrices, vectors;
  std::vector<std::string> numbers;               // formulas of the step
  llvm::StringMap<mlir::func::FuncOp> composites; // by what they are made for
};

} // namespace ft::compiler
