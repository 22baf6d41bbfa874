// Which instructions of a program touch which buffers, for questions about far away ones.
#pragma once

#include "dialects/ftx/views.h"
#include "llvm/ADT/DenseMap.h"

#include <optional>

namespace ft::compiler {

/// The instructions of a program, numbered as they stand at construction.
class InstructionOrder {
public:
  explicit InstructionOrder(mlir::ftx::ProgramOp program);

  size_t size() const { return instructions.size(); }
  mlir::Operation *operator[](size_t number) const { return instructions[number]; }

  /// Of an op that is no instruction: the number of the next instruction, `size()` behind the last.
  size_t numberOf(mlir::Operation *op) const { return numbers.lookup(op); }

private:
  llvm::SmallVector<mlir::Operation *, 0> instructions;
  llvm::DenseMap<mlir::Operation *, size_t> numbers;
};

/// Conflicts of accesses in O(log n): two instructions touch a buffer, one of them writes it. A transfer
/// touches its buffers where it starts and where it is waited for.
class BufferAccesses {
public:
  explicit BufferAccesses(const InstructionOrder &order);

  /// The last instruction before number `end` that conflicts with one of `ops`.
  std::optional<size_t> lastConflict(llvm::ArrayRef<mlir::Operation *> ops, size_t end) const;

  /// The first one from number `begin` on.
  std::optional<size_t> firstConflict(mlir::Operation *op, size_t begin) const;

private:
  // Numbers of instructions, ascending.
  struct Touched {
    llvm::SmallVector<size_t, 4> accesses;
    llvm::SmallVector<size_t, 2> writes;
  };
  const llvm::SmallVectorImpl<size_t> &inConflictWith(mlir::Value buffer, bool writes) const;

  llvm::DenseMap<mlir::Value, Touched> buffers;
};

} // namespace ft::compiler
