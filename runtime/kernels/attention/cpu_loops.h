// Attention by tiles of queries and keys, in a thread's scratch (ThreadScratch).
#pragma once

#include <cstdint>

#include "runtime/backends/cpu/loops.h"
#include "runtime/backends/cpu/simd/element_type.h"
#include "runtime/base/attention_span.h"
#include "runtime/kernels/random/cpu_loops.h"

namespace ft::cpu {

// Queries, and keys, per tile; tiles per block of the gradient.
inline constexpr int64_t kAttentionTile = 64;
inline constexpr int64_t kAttentionBlock = 2 * kAttentionTile;

// Tensors are f32, bf16 or f16, all but lse and row_sums of one type.
struct AttentionArgs {
  const void* q;  // [batch, positions, heads * head_size]
  const void* k;  // [batch, positions, kv_heads * head_size]
  const void* v;
  void* out;   // [batch, positions, heads * head_size]
  float* lse;  // [batch, heads, positions]
  int64_t positions;
  int64_t heads;
  int64_t kv_heads;
  int64_t head_size;  // at most kMaxHeadSize (runtime/kernels/attention/operands.h)
  int64_t q_stride;   // elements between positions of q, and of its gradient
  int64_t kv_stride;  // the same of k and v
  // A query sees the keys from span.before - 1 positions before it to span.after - 1 behind it.
  AttentionSpan span;
  float scale;          // s: of the products of q and k
  float softcap;        // c: s becomes c tanh(s / c); 0: it stays s
  const float* slopes;  // of heads: times (key's position - query's) they are added to s; nullptr: nothing is
  const int32_t* lengths;         // [batch]: keys that count, of any value; nullptr: all
  const SegmentBounds* segments;  // [batch, positions]; nullptr: one segment
  DropoutArgs dropout;            // element of the probabilities [batch, heads, positions, positions]

  bool causal() const { return span.after == 1; }
  bool drops() const { return dropout.threshold > 0; }
};

// Heads that share a key and value head and are worked on together, so that a tile of keys is packed once for
// them: a divisor of the heads that share.
inline constexpr int64_t kMaxHeadsTogether = 4;
constexpr int64_t AttentionHeadsTogether(const AttentionArgs& args) {
  const int64_t sharing = args.heads / args.kv_heads;
  return sharing % 4 == 0 ? 4 : (sharing % 3 == 0 ? 3 : (sharing % 2 == 0 ? 2 : 1));
}

// Where the gradients are summed: each float [batch, positions, ...] as q or k, with its own stride between
// positions.
struct AttentionSums {
  float *dq, *dk, *dv;
  int64_t q_stride, kv_stride;
};

struct AttentionGradArgs {
  AttentionArgs forward;
  const void* dout;
  float* row_sums;  // [batch, heads, positions]: dout . out
  void* dq;         // as q
  void* dk;         // as k
  void* dv;
  // The gradients themselves where they are f32; else beside them, for sequences first_batch ... only.
  AttentionSums sums;
  int64_t first_batch;
};

// One function for each type, at FloatIndex(dtype).
struct AttentionLoops {
  // Of a tile of queries of heads head, head + 1, ... as many as are worked on together.
  void (*forward[kFloatTypes])(const AttentionArgs&, int64_t batch, int64_t head, int64_t query_tile,
                               void* scratch);
};

struct AttentionGradLoops {
  // row_sums of one batch and head.
  void (*row_sums[kFloatTypes])(const AttentionGradArgs&, int64_t batch, int64_t head);
  // Adds what a block of queries of all heads of a kv head and a block of keys give to each other's
  // gradients. The first time for either block it sets them: then both must be `first`.
  void (*backward[kFloatTypes])(const AttentionGradArgs&, int64_t batch, int64_t kv_head, int64_t query_block,
                                int64_t key_block, bool first, void* scratch);
  // The sums of a block of positions of all heads, rounded to dq, dk and dv; nullptr for f32.
  void (*store[kFloatTypes])(const AttentionGradArgs&, int64_t batch, int64_t block);
};

FT_DECLARE_FOR_EVERY_ISA(AttentionLoops, kAttention)
FT_DECLARE_FOR_EVERY_ISA(AttentionGradLoops, kAttentionGrad)

}  // namespace ft::cpu
