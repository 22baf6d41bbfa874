// Machine code for clusters: what goes in, what comes out, how it is called.
//
// In: a *cluster body*, a func.func of one block whose ops are ft primitives over one space of rows and
// columns (space.h). Out: a position-independent piece of code for one level of x86-64, without relocations,
// symbols or writable data. Whoever has it copies it into memory, makes that executable, and calls
//
//   void kernel(void *const *operands, int64_t begin, int64_t end)    for rows   [begin, end)
//   void combine(void *const *operands, int64_t begin, int64_t end)   for chunks [begin, end)
//
// `operands` are the arguments of the body, its results, and a buffer of partial results for every result
// that is reduced over rows, in this order, each at least aligned to its elements. Truth values are bytes, 0
// or 1. A result with all rows and columns may be in the buffer of an argument of the same type; else results
// and arguments do not overlap.
//
// Calls of `kernel` may run side by side and cut the rows [0, rows) anywhere, at multiples of `blockRows` (or
// at the end): each block of rows has partial results of its own. `combine` exists where there are such, runs
// after all of `kernel`, and takes chunks [0, chunks) of 64 columns. Bits depend on neither cut. Rows are
// those of the space, which may be as short as 64 elements: who calls in parallel gives each call some
// thousand elements.
#pragma once

#include <cstdint>
#include <string>

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ft::compiler {

/// Levels of the x86-64 psABI. V3 and V4 give the same bits (payloads of NaN aside); V2, which has no fma,
/// gives others where an elementary function or a gradient of one is computed.
enum class X86Level { V2, V3, V4 };
inline constexpr X86Level kX86Levels[] = {X86Level::V2, X86Level::V3, X86Level::V4};

/// "x86-64-v3": what LLVM calls it.
llvm::StringRef nameOf(X86Level level);

/// What a caller has to know, which follows from the body alone.
struct KernelInterface {
  int64_t rows = 0;
  int64_t blockRows = 1; // cuts of the rows are multiples of this
  int64_t chunks = 0;    // of combine; 0 where there is none
  // Of each buffer of partial results, in the order of the results that are reduced over rows.
  llvm::SmallVector<int64_t> partialBytes;
};

struct GeneratedKernel {
  KernelInterface interface;
  std::string code;
  uint64_t kernelOffset = 0;
  uint64_t combineOffset = 0; // where interface.chunks is not 0
};

/// The same bytes for the same body, always. Fails with one error, at the op, for what is no cluster body.
mlir::FailureOr<GeneratedKernel> generateKernel(mlir::func::FuncOp body, X86Level level);

/// That of generateKernel, without the code; fails for the same bodies.
mlir::FailureOr<KernelInterface> interfaceOf(mlir::func::FuncOp body);

} // namespace ft::compiler
