// How the threads of a GPU share the elements of a space. The order of every sum follows from the extents of
// the space alone; how many threads there are also from whether rows are reduced, and from what else a
// cluster does.
//
// A row is cut into packs of 8 columns, whatever their type; pack p belongs to thread p mod `rowThreads` of
// the row. So column i is added by lane i mod (8 rowThreads), in ascending order. Rows of up to 1024 columns
// have a warp or a part of one, and a block has several; longer ones have a block, with 2 packs a thread up
// to 8192 columns. Up to 16384 columns (32768 where no rows are reduced) the packs of a thread, at most 4,
// are code of their own each; with more it walks over them in a loop.
//
// Where rows are reduced (sums over rows), a block has `blockRows` rows, one after the other for each of its
// groups of threads. Where no row has a reduction of its own, rows longer than a warp has are cut into
// `segments` of a pack a thread, of which a block has one; and where nothing is stored of rows, several are
// read at once. Neither changes the order of a sum.
#pragma once

#include <cstdint>

#include "runtime/base/cluster.h"
#include "llvm/Support/MathExtras.h"

namespace ft::compiler {

inline constexpr int64_t kPack = 8;
inline constexpr int64_t kWarp = 32;
inline constexpr int64_t kMostThreads = 1024; // of a block

struct ThreadPlan {
  static ThreadPlan of(const ClusterBody &body);

  int64_t rows = 1, columns = 1; // one row of all elements where the space is flat
  bool flat = false;             // every thread of the grid has one pack: one row of segments
  bool reducesRows = false;
  int64_t rowThreads = 1; // of one row: a power of two up to a warp, or whole warps
  int64_t groups = 1;     // of rowThreads each, in a block
  int64_t blockRows = 1;  // a multiple of groups
  int64_t segments = 1;   // of a row
  int64_t rowsAtOnce = 1; // a divisor of blockRows / groups
  int64_t blocksTogether =
      1; // on a multiprocessor, where rows are reduced: those of the whole grid, if registers allow
  int64_t wordBytes = 4; // of sums in shared memory and of partial results: 8 where any is of i64

  int64_t packs() const { return llvm::divideCeil(columns, kPack); }
  int64_t wholePacks() const { return columns / kPack; }
  int64_t tailLanes() const { return columns % kPack; } // of the last pack; 0 where it is whole
  int64_t threadPacks() const { return llvm::divideCeil(packs(), rowThreads * segments); }
  bool isUnrolled() const;
  int64_t threads() const { return rowThreads * groups; }
  int64_t warpsOfRow() const { return llvm::divideCeil(rowThreads, kWarp); }
  int64_t blocks() const;
  int64_t rowBlocks() const; // of a segment
  /// Columns of partial results, of which a block of rows has one row: whole packs.
  int64_t partialColumns() const { return packs() * kPack; }
};

} // namespace ft::compiler
