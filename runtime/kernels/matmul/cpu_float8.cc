#include "runtime/kernels/matmul/cpu_float8.h"

#include <algorithm>
#include <atomic>

#include "runtime/kernels/matmul/cpu_float8_loops.h"

namespace ft::cpu {
namespace {

constexpr int64_t kPiece = 4096;   // elements that a thread takes at a time
constexpr int64_t kColumns = 256;  // of which each has a scale

int ExponentOf(uint16_t greatest, Float8 type) {
  return Float8ScaleExponent(static_cast<uint32_t>(greatest) << 16, FormatOf(type));
}

// All elements share a scale.
void RoundTogether(const Float8Rounding& r, const Float8Loops& loops, int threads) {
  const int64_t elements = r.rows * r.columns;
  std::atomic<uint16_t> greatest = 0;
  ParallelRanges(elements, kPiece, threads, [&](int64_t begin, int64_t end) {
    const uint16_t own = loops.greatest(r.x + begin, end - begin);
    uint16_t seen = greatest.load(std::memory_order_relaxed);
    while (seen < own && !greatest.compare_exchange_weak(seen, own, std::memory_order_relaxed)) {
    }
  });
  const int exponent = ExponentOf(greatest, r.type);
  ParallelRanges(elements, kPiece, threads, [&](int64_t begin, int64_t end) {
    loops.round(r.x + begin, end - begin, r.type, PowerOfTwo(exponent), PowerOfTwo(-exponent),
                r.result + begin);
  });
}

// Each column of a band of rows has a scale.
void RoundColumns(const Float8Rounding& r, const Float8Loops& loops, int threads) {
  const int64_t bands = (r.rows + r.blocks.rows - 1) / r.blocks.rows;
  const int64_t strips = (r.columns + kColumns - 1) / kColumns;
  ParallelFor(bands * strips, threads, [&](int64_t piece) {
    const int64_t first = piece / strips * r.blocks.rows, last = std::min(r.rows, first + r.blocks.rows);
    const int64_t column = piece % strips * kColumns, n = std::min(kColumns, r.columns - column);
    uint16_t greatest[kColumns] = {};
    for (int64_t row = first; row < last; ++row)
      loops.greatest_of_each(r.x + row * r.columns + column, n, greatest);
    float scale[kColumns], inverse[kColumns];
    for (int64_t i = 0; i < n; ++i) {
      const int exponent = ExponentOf(greatest[i], r.type);
      scale[i] = PowerOfTwo(exponent);
      inverse[i] = PowerOfTwo(-exponent);
    }
    for (int64_t row = first; row < last; ++row) {
      const int64_t at = row * r.columns + column;
      loops.round_each(r.x + at, n, r.type, scale, inverse, r.result + at);
    }
  });
}

// Blocks of rows and columns.
void RoundBlocks(const Float8Rounding& r, const Float8Loops& loops, int threads) {
  const int64_t bands = (r.rows + r.blocks.rows - 1) / r.blocks.rows;
  const int64_t strips = (r.columns + r.blocks.columns - 1) / r.blocks.columns;
  ParallelFor(bands * strips, threads, [&](int64_t piece) {
    const int64_t first = piece / strips * r.blocks.rows, last = std::min(r.rows, first + r.blocks.rows);
    const int64_t column = piece % strips * r.blocks.columns;
    const int64_t n = std::min(r.blocks.columns, r.columns - column);
    uint16_t greatest = 0;
    for (int64_t row = first; row < last; ++row)
      greatest = std::max(greatest, loops.greatest(r.x + row * r.columns + column, n));
    const int exponent = ExponentOf(greatest, r.type);
    for (int64_t row = first; row < last; ++row) {
      const int64_t at = row * r.columns + column;
      loops.round(r.x + at, n, r.type, PowerOfTwo(exponent), PowerOfTwo(-exponent), r.result + at);
    }
  });
}

}  // namespace

void Float8Rounding::Run(const Float8Loops& loops, int threads) const {
  const int used = ThreadsFor(threads, rows * columns);
  if (blocks.rows >= rows && blocks.columns >= columns) return RoundTogether(*this, loops, used);
  blocks.columns == 1 ? RoundColumns(*this, loops, used) : RoundBlocks(*this, loops, used);
}

}  // namespace ft::cpu
