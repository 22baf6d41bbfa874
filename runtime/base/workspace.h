// Bytes of scratch that kernels need, as pure functions of shapes.
//
// The compiler plans a workspace with the function of an op, and the kernel refuses any smaller one, so both
// read the formulas here. None of them depends on the number of threads or ranks. All sizes are in bytes, all
// counts in elements; float scratch is f32 whatever the element type of the tensors.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/base/dtype.h"

namespace ft {

inline constexpr int64_t kFloatBytes = 4;
inline constexpr int64_t kDoubleBytes = 8;

// Sums over rows are made of one partial per block of rows, added in order. The number of blocks is fixed, so
// that the result does not depend on the number of threads.
inline constexpr int64_t kReductionBlocks = 32;

// What the scratch of attention follows from.
struct AttentionSizes {
  int64_t batch, positions, heads, kv_heads, head_size;
  DType dtype = DType::kF32;
  bool segments = false;  // their ids are an operand

  constexpr int64_t rows() const { return batch * heads * positions; }
};

// Where the segment of each position begins and ends (attention_span.h): whole cache lines.
constexpr int64_t AttentionSegmentsWorkspace(const AttentionSizes& s) {
  return s.segments ? (s.batch * s.positions * 2 * 4 + 63) / 64 * 64 : 0;
}

// attention keeps its tiles in scratch of each thread.
constexpr int64_t AttentionWorkspace(const AttentionSizes& s) { return AttentionSegmentsWorkspace(s); }

// Sequences whose gradients attention_grad sums at a time when those have 16 bits, and so are summed beside
// them in f32: enough that 64 pairs of 128 queries and 128 keys can be worked on at once.
constexpr int64_t AttentionGradSequences(int64_t batch, int64_t positions, int64_t kv_heads) {
  const int64_t pairs = std::max<int64_t>(1, kv_heads * ((positions + 127) / 128));
  return std::clamp<int64_t>((63 + pairs) / pairs, 1, std::max<int64_t>(1, batch));
}

// attention_grad: where segments begin and end; for each query row and head, the sum over the head of dout *
// out; for 16 bits also the sums of dq, dk and dv of some sequences.
constexpr int64_t AttentionGradWorkspace(const AttentionSizes& s) {
  const int64_t segments = AttentionSegmentsWorkspace(s);
  if (s.dtype == DType::kF32) return segments + s.rows() * kFloatBytes;
  const int64_t sums = AttentionGradSequences(s.batch, s.positions, s.kv_heads) * s.positions *
                       (s.heads + 2 * s.kv_heads) * s.head_size;
  return segments + ((s.rows() + 15) / 16 * 16 + sums) * kFloatBytes;
}

// Rows whose logits linear_cross_entropy and its gradients hold at a time: as many as fit in 64 MiB, in
// multiples of 64, at least 64, at most all. Every chunk reads the whole weight twice and adds to its whole
// gradient; on two AVX-512 cores GPT-2's head takes 1.5 times as long with chunks of 64 rows (16 MiB) as with
// 256.
constexpr int64_t LinearCrossEntropyChunkRows(int64_t rows, int64_t vocabulary) {
  const int64_t fit = (int64_t{64} << 20) / (kFloatBytes * std::max<int64_t>(vocabulary, 1)) / 64 * 64;
  return std::min(rows, std::max<int64_t>(64, fit));
}

// linear_cross_entropy, _grad and _loss_grad: the logits of a chunk, then the loss of every row.
constexpr int64_t LinearCrossEntropyWorkspace(int64_t rows, int64_t vocabulary) {
  return LinearCrossEntropyChunkRows(rows, vocabulary) * vocabulary * kFloatBytes + rows * kFloatBytes;
}

// A product [m, k] x [k, n] of operands that are rounded to 8 bits: these as bf16, each from a whole cache
// line on.
constexpr int64_t Float8Operand(int64_t elements) { return (elements * 2 + 63) / 64 * 64; }
constexpr int64_t Float8Workspace(int64_t m, int64_t n, int64_t k) {
  return Float8Operand(m * k) + Float8Operand(n * k);
}

// Most bits of a code of binary_mapper.
inline constexpr int kMaxCodeBits = 20;

// binary_mapper_grad works on blocks of `BinaryMapperRows` rows x `BinaryMapperCodes` codes: the products of
// the upstream gradient and the table, at most 4 MiB.
constexpr int64_t BinaryMapperCodes(int64_t bits) { return int64_t{1} << std::min<int64_t>(bits, 12); }
constexpr int64_t BinaryMapperRows(int64_t rows) { return std::min<int64_t>(rows, 256); }
constexpr int64_t BinaryMapperGradWorkspace(int64_t rows, int64_t bits) {
  return BinaryMapperRows(rows) * BinaryMapperCodes(bits) * kFloatBytes;
}

}  // namespace ft
