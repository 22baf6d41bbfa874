// Which values must lie in a place that is given from outside, and when values die.
#pragma once

#include "dialects/ft/dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

#include <optional>

namespace ft::compiler {

/// The place of operand `index` of `owner`: a ft.pack (a parameter's part of the flat gradient) or the
/// function's return (a port).
struct Destination {
  mlir::Operation *owner;
  unsigned index;
};

/// Analysis of a function of one block. The result of a ft.reshape is an alias of what it reads, its root,
/// and lives and dies with it, where that is computed by a kernel, or is a parameter that is neither released
/// nor written before the alias dies. Of anything else a reshape is a copy.
class ValueUses {
public:
  explicit ValueUses(mlir::func::FuncOp function);

  bool isAlias(mlir::ft::ReshapeOp reshape) const { return roots.contains(reshape.getResult()); }

  /// Where `value` has to be written. A value that is wanted in a place but has no destination there must be
  /// copied.
  std::optional<Destination> destinationOf(mlir::Value value) const;

  /// True when `op` is the last op that uses `value` or an alias of it, and the only operand that is one of
  /// these is `value`.
  bool diesAt(mlir::Value value, mlir::Operation *op) const;

  /// True when result `index` of `op` can take over the buffer of `operand`, which it overwrites: the operand
  /// dies here and is used only once.
  bool canOverwrite(mlir::Value operand, mlir::Operation *op) const;

private:
  void findRoots(mlir::Block &block);
  mlir::Value rootOf(mlir::Value value) const;
  void assign(mlir::Value value, Destination destination);
  void visit(mlir::Operation *op);

  llvm::DenseMap<mlir::Value, mlir::Value> roots;         // of aliases
  llvm::DenseMap<mlir::Value, mlir::Operation *> lastUse; // by root
  llvm::DenseMap<mlir::Value, Destination> destinations;  // by root
};

/// The operand whose buffer result `index` has to take over; null when there is none.
mlir::Value tiedOperand(mlir::Operation *op, unsigned index);

} // namespace ft::compiler
