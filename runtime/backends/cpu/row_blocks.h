// Rows cut into a number of blocks that depends on the shape alone.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/base/workspace.h"

namespace ft::cpu {

struct RowBlocks {
  // At most kReductionBlocks, of at least 8 rows.
  explicit RowBlocks(int64_t rows) : rows(rows), count(std::clamp<int64_t>(rows / 8, 1, kReductionBlocks)) {}

  int64_t Begin(int64_t block) const { return rows * block / count; }

  int64_t rows;
  int64_t count;
};

}  // namespace ft::cpu
