// Rows cut into a number of blocks that depends on the shape alone, and the sum of the blocks' partial
// results.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/backends/cpu/routines/rows.h"
#include "runtime/base/workspace.h"

namespace ft::cpu {

struct RowBlocks {
  // At most kReductionBlocks, of at least 8 rows.
  explicit RowBlocks(int64_t rows) : rows(rows), count(std::clamp<int64_t>(rows / 8, 1, kReductionBlocks)) {}

  int64_t Begin(int64_t block) const { return rows * block / count; }

  int64_t rows;
  int64_t count;
};

// result[i] = the sum over blocks, in order, of partials[block * stride + i], for columns begin ... end - 1.
inline void SumPartials(const Routines& routines, const float* partials, int64_t blocks, int64_t stride,
                        int64_t begin, int64_t end, float* result) {
  routines.rows.column_sum({partials, stride, result}, 0, blocks, begin, end);
}

}  // namespace ft::cpu
