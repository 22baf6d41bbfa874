// The values of a cluster body at some columns of a row, whatever computes them.
#pragma once

#include "compiler/codegen/elements.h"
#include "compiler/codegen/random_bits.h"
#include "runtime/base/cluster.h"

namespace ft::compiler {

/// A body, and what follows from it for whoever makes code of it.
struct BodyFacts {
  explicit BodyFacts(const ClusterBody &body);

  const ClusterBody &body;
  std::vector<bool> columns; // by value: whether it has some of its own
  std::vector<int> levels;   // by value: passes over the columns of a row before it is known
  int lastLevel = 0;

  /// Ops that are reductions of columns whose operands are known after `level` passes, as values.
  llvm::SmallVector<uint32_t> reductions(int level) const;
  const ClusterBody::Op &op(uint32_t value) const { return body.ops[value - body.reads.size()]; }
  bool isRead(uint32_t value) const { return value < body.reads.size(); }
  /// Whether it is a function that is worth many operations.
  bool takesFunction(uint32_t value) const;
  /// All that has columns and is computed or read for `value`, given `known`.
  using Values = llvm::DenseSet<uint32_t>;
  void reach(uint32_t value, const Values &known, Values &reached) const;
};

/// An output over rows, and its operand of the kernel for partial results.
struct PartialOutput {
  const ClusterBody::Output *output;
  unsigned operand;
  DType value, result; // types
};
/// Operands of a kernel: inputs, results, partial results, streams.
llvm::SmallVector<PartialOutput> partialOutputsOf(const ClusterBody &body);
unsigned operandsOf(const ClusterBody &body);
inline unsigned operandOfResult(const ClusterBody &body, uint32_t result) {
  return static_cast<unsigned>(body.inputs.size()) + result;
}

/// What a value is made from that no op of the body gives, at some columns of a row.
struct BodyReader {
  llvm::function_ref<Lanes(uint32_t read)> load;
  llvm::function_ref<mlir::Value()> row, column; // i64; of the first of the columns
};

/// Of the first column of a row, an i64.
mlir::Value rowBegin(LaneBuilder &b, const ClusterBody::Place &place, mlir::Value row, int64_t rows);

class BodyValues {
public:
  /// Of `width` columns at a time.
  BodyValues(LaneBuilder &b, const BodyFacts &facts, int64_t width) : b(b), facts(facts), width(width) {}

  /// Starts a row: nothing is known of it.
  void clear() { rowValues.clear(); }
  /// Of what has no columns: one a row, or one for all.
  void set(uint32_t value, Lanes scalar) { rowValues[value] = scalar; }
  Lanes get(uint32_t value) const { return rowValues.lookup(value); }
  /// Those of row `row` without columns that are known after `level` passes, but for the reductions.
  void evaluateScalars(int level, llvm::function_ref<mlir::Value()> row);

  using LanesOf = llvm::DenseMap<uint32_t, Lanes>;
  /// At columns whose known values are in `known`.
  Lanes vectorOf(uint32_t value, LanesOf &known, const BodyReader &reader) const;

  /// Reads the states of generators; `operands` are those of the kernel, addresses but for the streams at
  /// their end.
  void readStates(llvm::ArrayRef<mlir::Value> operands);

private:
  Lanes fillOf(const ClusterBody::Op &op, int64_t lanes) const;
  Lanes bitsOf(const ClusterBody::Op &op, mlir::Value row, mlir::Value column) const;
  Lanes numbersOf(const ClusterBody::Op &op, mlir::Value row, mlir::Value column) const;
  Lanes evaluate(const ClusterBody::Op &op, llvm::ArrayRef<Lanes> operands) const;

  LaneBuilder &b;
  const BodyFacts &facts;
  int64_t width;
  LanesOf rowValues;
  llvm::DenseMap<uint32_t, RandomKey> states; // by input; without a stream
  llvm::SmallVector<mlir::Value> streams;     // by draw
};

} // namespace ft::compiler
