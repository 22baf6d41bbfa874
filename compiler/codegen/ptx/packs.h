// Packs of 8 columns in memory, by accesses of up to 128 bits: as wide as the alignment of rows allows.
#pragma once

#include "compiler/codegen/kernel_builder.h"
#include "compiler/codegen/ptx/thread_plan.h"
#include "compiler/codegen/scalars.h"

namespace ft::compiler {

/// A pack of a row, of this thread. Conditions are i1.
struct PackPlace {
  mlir::Value column = {}; // its first, i64
  mlir::Value inside = {}; // whether the row has it; null: it does
  mlir::Value whole = {};  // whether it has 8 columns of the row; null: it does
  mlir::Value tail = {};   // whether it has the last few of the row; null: it has not
  bool isTail = false;     // it has, surely
};

/// Where in memory packs are read or written.
struct PackAddress {
  mlir::Value row;    // of the first column
  DType element;      // as the body has it
  int64_t aligned;    // a number of elements that all rows begin at multiples of; 0: at an aligned address
  int64_t stride = 1; // elements from one column to the next
};

/// What is in memory, 8 elements each: whole packs, or the columns that the tail has and zeros.
KernelBuilder::LanesList loadPacks(KernelBuilder &b, llvm::ArrayRef<PackAddress> from, const PackPlace &place,
                                   int64_t tailLanes);
/// `bits` as memory has them.
void storePacks(KernelBuilder &b, llvm::ArrayRef<Lanes> bits, llvm::ArrayRef<PackAddress> to,
                const PackPlace &place, int64_t tailLanes);

/// A place whose memory is touched only where `active` holds, if it is not null.
PackPlace where(KernelBuilder &b, mlir::Value active, PackPlace place);
/// `a` for the columns that the row has, `b` for others.
Lanes ofRow(const PackPlace &place, int64_t tailLanes, Lanes a, Lanes b);

} // namespace ft::compiler
