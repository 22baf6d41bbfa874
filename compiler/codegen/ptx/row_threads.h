// A row by the threads it has: its inputs, its reductions, its results.
#pragma once

#include "compiler/codegen/early_results.h"
#include "compiler/codegen/ptx/packs.h"
#include "compiler/codegen/ptx/row_registers.h"

namespace ft::compiler {

class RowThreads {
public:
  using LanesList = KernelBuilder::LanesList;

  RowThreads(KernelBuilder &b, const BodyFacts &facts, const ThreadPlan &plan);

  /// Of the entry that is being built: operands, this thread among those of the row, and the segment of the
  /// row, if there are several.
  void enter(llvm::ArrayRef<mlir::Value> pointers, mlir::Value thread, mlir::Value segment);
  /// What reading whole rows gives for row `index`, for emitRow; nothing is read where `active`, if it is not
  /// null, does not hold. Empty where rows are read piece by piece.
  LanesList readRow(mlir::Value index, mlir::Value active);
  /// Row `index` of the space; nothing is written where `active`, if it is not null, does not hold.
  /// `read` is what readRow gave for it, or nothing. `sums` are what results that are reduced over rows have
  /// so far, for each of them and each pack of the thread, where packs are unrolled; they are returned with
  /// this row. Else they are in memory, from `partialRow` elements on.
  LanesList emitRow(mlir::Value index, mlir::Value active, llvm::ArrayRef<Lanes> read,
                    llvm::ArrayRef<Lanes> sums, mlir::Value partialRow);
  /// Whether what is read of a row leaves room for that of the next beside it.
  bool readsAhead() const { return registers.ahead; }

  // Of each result that is reduced over rows and each pack, as above: nothing yet, and to memory.
  LanesList noSums() const;
  void clearSums(mlir::Value partialRow);
  void storeSums(llvm::ArrayRef<Lanes> sums, mlir::Value partialRow);

private:
  // A pack of this thread; which of them, where they are unrolled.
  struct Pack {
    PackPlace place;
    size_t index = 0;
  };
  using Step = llvm::function_ref<LanesList(const Pack &, llvm::ArrayRef<Lanes> carried)>;

  LanesList eachPack(LanesList carried, Step step);
  PackPlace placeOf(mlir::Value pack, int64_t first) const;
  /// Of operand `operand` of the kernel.
  mlir::Value rowAddress(unsigned operand, const ClusterBody::Place &place, DType element);
  PackAddress addressOf(unsigned operand, const ClusterBody::Place &place, DType element);
  PackAddress addressOfRead(uint32_t read);
  PackAddress addressOfOutput(size_t output);
  PackAddress partialAddress(const PartialOutput &partial, mlir::Value partialRow);
  Lanes nothingOf(const PartialOutput &partial) const;
  mlir::Value rowOfSpace();
  LanesList readPacks(llvm::ArrayRef<uint32_t> reads, mlir::Value active);
  void readScalars();
  Lanes *bitsOfRead(uint32_t read, const Pack &pack);
  Lanes valueAt(uint32_t value, const Pack &pack, BodyValues::LanesOf &known);
  BodyValues::LanesOf writtenBefore(int pass, const Pack &pack);
  void storeEarly(const Pack &pack, const BodyValues::LanesOf &known);
  bool isEarly(size_t output) const;
  void emitReductions(int level, int64_t slot);
  LanesList emitResults(llvm::ArrayRef<Lanes> sums, mlir::Value partialRow);
  void storeRows(const Pack &pack, const BodyValues::LanesOf &known);
  void storeScalars();

  KernelBuilder &b;
  const BodyFacts &facts;
  const ClusterBody &body;
  const ThreadPlan &plan;
  BodyValues values;
  llvm::SmallVector<PartialOutput> partials;
  const RowRegisters registers;
  llvm::SmallVector<EarlyResult> early;
  // Of the entry.
  llvm::SmallVector<mlir::Value> pointers;
  mlir::Value thread, segment;
  llvm::SmallVector<Pack> packs; // of this thread, where they are unrolled
  LanesList constantBits;        // for each of them, of registers.constant
  // Of the row.
  mlir::Value row, active;
  LanesList heldBits; // for each pack, of registers.held
};

} // namespace ft::compiler
