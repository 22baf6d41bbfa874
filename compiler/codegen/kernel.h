// Machine code for clusters: what goes in, what comes out, how it is called.
//
// In: a *cluster body* (runtime/base/cluster.h). Out: a position-independent piece of code for one level of
// x86-64, without relocations, symbols or writable data. Whoever has it copies it into memory, makes that
// executable, and calls
//
//   void kernel(void *const *operands, int64_t begin, int64_t end)    for rows   [begin, end)
//   void combine(void *const *operands, int64_t begin, int64_t end)   for chunks [begin, end)
//
// `operands` are the inputs of the body, its results, and a buffer of partial results for every output
// over rows, in this order, each at least aligned to its elements; and for every draw of
// random bits the stream of the generator, a number in the place of an address. Truth values are bytes, 0
// or 1. A result may be in the buffer of an input where MayTakePlaceOf says so; else results and inputs do
// not overlap.
//
// Calls of `kernel` may run side by side and cut the rows [0, rows) anywhere, where there are such at
// multiples of BlockRows() (or at the end): each block of rows has partial results of its own. `combine`
// exists where there are such, runs after all of `kernel`, and takes chunks of 64 columns. Bits depend on
// neither cut. Rows are those of the space, which may be as short as 64 elements: who calls in parallel gives
// each call some thousand elements.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/cluster.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace ft::compiler {

/// Levels of the x86-64 psABI. V3 and V4 give the same bits (payloads of NaN aside); V2, which has no fma,
/// gives others where an elementary function or a gradient of one is computed.
enum class X86Level { V2, V3, V4 };
inline constexpr X86Level kX86Levels[] = {X86Level::V2, X86Level::V3, X86Level::V4};

/// "x86-64-v3": what LLVM calls it.
llvm::StringRef nameOf(X86Level level);

struct GeneratedKernel {
  std::string code;
  uint64_t kernelOffset = 0;
  uint64_t combineOffset = 0; // of bodies with outputs over rows
};

/// The same bytes for the same body, always. `body` is one that CheckClusterBody takes.
llvm::Expected<GeneratedKernel> generateKernel(const ClusterBody &body, X86Level level);

} // namespace ft::compiler
