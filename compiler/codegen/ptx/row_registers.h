// What a thread keeps in registers of the rows it goes through, by what it has room for.
#pragma once

#include "compiler/codegen/body_values.h"
#include "compiler/codegen/ptx/thread_plan.h"

namespace ft::compiler {

struct RowRegisters {
  static RowRegisters of(const BodyFacts &facts, const ThreadPlan &plan);

  llvm::SmallVector<uint32_t> held;     // reads of whole rows, all there at once; none: piece by piece
  llvm::SmallVector<uint32_t> constant; // reads that all rows have in common, done once
  bool ahead = false;                   // the next row is read while this one is summed up
  /// Of the kernel, on a multiprocessor: for how many ptxas is to leave registers. 0: it may choose.
  int64_t blocks = 0;
};

} // namespace ft::compiler
