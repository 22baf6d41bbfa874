// Bytes of scratch that the CUDA backend's kernels need, as pure functions of shapes; workspace.h has the
// CPU's. All sizes are in bytes, all counts in elements.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/base/dtype.h"
#include "runtime/base/float8.h"
#include "runtime/base/workspace.h"

namespace ft::cuda_workspace {

// A part of a workspace begins at a multiple of this.
inline constexpr int64_t kAlignment = 256;
constexpr int64_t Aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// A matrix product: what NVIDIA recommends for cuBLASLt on Hopper (cublasSetWorkspace's documentation).
constexpr int64_t Matmul() { return int64_t{32} << 20; }

// A product [m, k] x [k, n] of operands that are rounded to 8 bits: that of the library; each operand as it
// wants them, k innermost and in whole blocks; and what scales come of, then the scales, at most one for a
// block of 128 elements along k.
inline constexpr int64_t kFloat8Greatest = 256;  // partial maxima of an operand
constexpr int64_t Float8Padded(int64_t k) { return (k + kFloat8Block - 1) / kFloat8Block * kFloat8Block; }
// Of one operand of `rows` rows.
struct Float8Parts {
  int64_t greatest, scales, bytes;  // where these begin, behind the elements, and where all ends
};
constexpr Float8Parts PartsOfFloat8(int64_t rows, int64_t k) {
  const int64_t greatest = Aligned(rows * Float8Padded(k));
  // Those of 128 x 128 elements are fewer, though their rows are filled up to fours.
  const int64_t blocks = std::max<int64_t>(rows, 4 * ((rows + kFloat8Block - 1) / kFloat8Block)) *
                         (Float8Padded(k) / kFloat8Block);
  const int64_t scales = greatest + Aligned(std::max(kFloat8Greatest, blocks) * 4);
  return {greatest, scales, scales + Aligned(std::max<int64_t>(blocks, 1) * 4)};
}
constexpr int64_t Float8Product(int64_t m, int64_t n, int64_t k) {
  return Matmul() + PartsOfFloat8(m, k).bytes + PartsOfFloat8(n, k).bytes;
}

// cuDNN's fused attention, of bf16 and f16: upper bounds of what plans of 9.19 to 9.26 report for compute
// capabilities 8.0, 9.0 and 10.0 (libraries/cudnn_attention_plans_test.cc).
constexpr int64_t CudnnAttention() { return kAlignment; }
// Row sums of dout * out; dq as f32, a second time in the layout of Ampere's engine (positions in eights);
// with shared heads dk and dv of each head; counters of the blocks of an engine that adds in order.
constexpr int64_t CudnnAttentionGrad(const AttentionSizes& s) {
  const int64_t rows = s.rows(), padded_rows = s.batch * s.heads * ((s.positions + 7) / 8 * 8);
  const int64_t of_heads = s.heads == s.kv_heads ? 0 : 2 * rows * s.head_size * 2;
  const int64_t counters = s.batch * s.heads * ((s.positions + 63) / 64) * 8;
  return Aligned(rows * 4) + Aligned(rows * s.head_size * 4) +
         Aligned(padded_rows * s.head_size * 4 + of_heads) + Aligned(counters) + 2 * kAlignment;
}

// Our own kernels keep their tiles in shared memory; where segments begin and end lies before the sums that
// the gradient has for each query and head.
constexpr int64_t OwnAttention(const AttentionSizes& s) { return Aligned(AttentionSegmentsWorkspace(s)); }
constexpr int64_t OwnAttentionGrad(const AttentionSizes& s) {
  return OwnAttention(s) + Aligned(s.rows() * 4);
}
// Which of the two it is may differ from run to run of a plan, so there is room for both.
constexpr int64_t Attention(const AttentionSizes& s) {
  return s.dtype == DType::kF32 ? OwnAttention(s) : std::max(OwnAttention(s), CudnnAttention());
}
constexpr int64_t AttentionGrad(const AttentionSizes& s) {
  return s.dtype == DType::kF32 ? OwnAttentionGrad(s) : std::max(OwnAttentionGrad(s), CudnnAttentionGrad(s));
}

// Positions are sorted by id, in tiles of kSortTile and by digits of which there are kSortDigits.
inline constexpr int64_t kSortTile = 2048;
inline constexpr int64_t kSortDigits = 256;
constexpr int64_t SortTiles(int64_t positions) { return (positions + kSortTile - 1) / kSortTile; }
// Sorted positions that one warp adds up: about 2048 slices, of at least 32.
constexpr int64_t EmbeddingSlice(int64_t positions) {
  return std::max<int64_t>(32, (positions + 2047) / 2048);
}
constexpr int64_t EmbeddingSlices(int64_t positions) {
  return (positions + EmbeddingSlice(positions) - 1) / EmbeddingSlice(positions);
}
// The sorted positions, twice; counters of digits; the sums of ids that are cut by a slice's begin or end.
constexpr int64_t EmbeddingGrad(int64_t positions, int64_t vocabulary, int64_t columns) {
  return 2 * Aligned(positions * 8) + Aligned(kSortDigits * SortTiles(positions) * 4) +
         2 * EmbeddingSlices(positions) * columns * 4;
}

// LossScale of kernels/linear_cross_entropy/cuda_device.h.
inline constexpr int64_t kLossScale = kAlignment;

// Logits of linear_cross_entropy are of the type of x. Their rows begin at multiples of 16 bytes, as tensor
// cores want it.
constexpr int64_t LogitStride(int64_t vocabulary, DType dtype) {
  const int64_t pack = 16 / static_cast<int64_t>(SizeOf(dtype));
  return (vocabulary + pack - 1) / pack * pack;
}
// Rows whose logits are held at a time. 8192 rows fill a GPU with products whose result is only as wide as x;
// of a small vocabulary there may be as many as fit in 256 MiB, of a large one no more than fit in 1 GiB. A
// multiple of 256, and chunks of about the same size, when there are several.
constexpr int64_t LogitRows(int64_t rows, int64_t vocabulary, DType dtype) {
  const int64_t row =
      LogitStride(std::max<int64_t>(vocabulary, 1), dtype) * static_cast<int64_t>(SizeOf(dtype));
  const int64_t few = (int64_t{256} << 20) / row / 256 * 256, many = (int64_t{1} << 30) / row / 256 * 256;
  const int64_t limit = std::max<int64_t>(256, std::clamp<int64_t>(8192, few, many));
  if (rows <= limit) return rows;
  const int64_t chunks = (rows + limit - 1) / limit;
  return ((rows + chunks - 1) / chunks + 255) / 256 * 256;
}

// Where the parts of linear_cross_entropy's workspace begin; the logits at 0. Parts that are not needed are
// empty.
struct LinearCrossEntropyParts {
  int64_t chunk;      // rows
  int64_t stride;     // of the logits, in elements
  bool narrow;        // f16 with gradients: see LossScaleArgs of kernels/linear_cross_entropy/cuda_device.h
  bool weight_apart;  // dweight is summed up in f32 and rounded once
  int64_t losses, scale, dx, dweight, product;
  int64_t bytes;
};
// x [rows, columns] of `dtype`, dweight [vocabulary, columns] of `gradient`. The library multiplies 16-bit
// numbers to f32 or to their own type, f32 to f32.
constexpr LinearCrossEntropyParts PartsOfLinearCrossEntropy(int64_t rows, int64_t vocabulary, int64_t columns,
                                                            DType dtype, bool gradients, DType gradient,
                                                            int64_t chunk) {
  LinearCrossEntropyParts parts = {};
  parts.chunk = chunk;
  parts.stride = LogitStride(vocabulary, dtype);
  parts.narrow = gradients && dtype == DType::kF16;
  parts.weight_apart =
      gradients && (parts.narrow || (gradient != DType::kF32 && (gradient != dtype || rows > chunk)));
  parts.losses = Aligned(chunk * parts.stride * static_cast<int64_t>(SizeOf(dtype)));
  parts.scale = parts.losses + Aligned(rows * 4);
  parts.dx = parts.scale + kLossScale;
  parts.dweight = parts.dx + (parts.narrow ? Aligned(chunk * columns * 4) : 0);
  parts.product = parts.dweight + (parts.weight_apart ? Aligned(vocabulary * columns * 4) : 0);
  parts.bytes = parts.product + Matmul();
  return parts;
}
constexpr int64_t LinearCrossEntropy(int64_t rows, int64_t vocabulary, int64_t columns, DType dtype) {
  return PartsOfLinearCrossEntropy(rows, vocabulary, columns, dtype, false, dtype,
                                   LogitRows(rows, vocabulary, dtype))
      .bytes;
}
// With gradients.
constexpr int64_t LinearCrossEntropyGrad(int64_t rows, int64_t vocabulary, int64_t columns, DType dtype,
                                         DType gradient) {
  return PartsOfLinearCrossEntropy(rows, vocabulary, columns, dtype, true, gradient,
                                   LogitRows(rows, vocabulary, dtype))
      .bytes;
}
// binary_mapper_grad works on blocks of rows and codes: their products of the upstream gradient and the table
// (at most 32 MiB, so that they stay in the second-level cache between the two kernels), sums over blocks of
// codes where there are several, the product's own scratch.
constexpr int64_t BinaryMapperCodes(int64_t bits) { return int64_t{1} << std::min<int64_t>(bits, 12); }
constexpr int64_t BinaryMapperRows(int64_t rows) { return std::min<int64_t>(rows, 2048); }
constexpr int64_t BinaryMapperProducts(int64_t rows, int64_t bits) {
  return Aligned(BinaryMapperRows(rows) * BinaryMapperCodes(bits) * 4);
}
constexpr int64_t BinaryMapperSums(int64_t rows, int64_t bits) {
  return bits <= 12 ? 0 : Aligned(BinaryMapperRows(rows) * bits * 4);
}
constexpr int64_t BinaryMapperGrad(int64_t rows, int64_t bits, int64_t columns, DType dtype) {
  return BinaryMapperProducts(rows, bits) + BinaryMapperSums(rows, bits) + Matmul();
}
constexpr int64_t SumSquares() { return 0; }
constexpr int64_t LossCount(int64_t positions) { return 0; }

}  // namespace ft::cuda_workspace
