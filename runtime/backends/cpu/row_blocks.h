// Rows cut into a number of blocks that depends on the shape alone, and the sum of the blocks' partial
// results.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/backends/cpu/routines/convert.h"
#include "runtime/backends/cpu/routines/rows.h"
#include "runtime/base/workspace.h"
#include "runtime/device/kernel.h"

namespace ft::cpu {

struct RowBlocks {
  // At most kReductionBlocks, of at least 8 rows.
  explicit RowBlocks(int64_t rows) : rows(rows), count(std::clamp<int64_t>(rows / 8, 1, kReductionBlocks)) {}

  int64_t Begin(int64_t block) const { return rows * block / count; }

  int64_t rows;
  int64_t count;
};

// result[i] = the sum over blocks, in order, of partials[block * stride + i], for columns begin ... end - 1.
// The result is f32, bf16 or f16, rounded once.
inline void SumPartials(const Routines& routines, const float* partials, int64_t blocks, int64_t stride,
                        int64_t begin, int64_t end, const Tensor& result) {
  const auto column_sum = routines.rows.column_sum[FloatIndex(DType::kF32)];
  if (result.dtype == DType::kF32) {
    column_sum({partials, stride, result.as<float>()}, 0, blocks, begin, end);
    return;
  }
  constexpr int64_t kColumns = 512;
  float sums[kColumns];
  for (int64_t at = begin; at < end; at += kColumns) {
    const int64_t n = std::min(kColumns, end - at);
    column_sum({partials + at, stride, sums}, 0, blocks, 0, n);
    routines.convert.from_float[FloatIndex(result.dtype)](sums, result.data, at, n);
  }
}

}  // namespace ft::cpu
