// Attention by tiles of queries and keys; the scores of a tile live on the stack.
#pragma once

#include <cstdint>

#include "runtime/backends/cpu/routines/element_type.h"
#include "runtime/backends/cpu/routines/routines.h"

namespace ft::cpu {

// Queries, and keys, per tile: tiles of a head fit in the second-level cache and in 192 KiB of stack.
constexpr int64_t AttentionTile(int64_t head_size) {
  return head_size <= 64 ? 64 : (head_size <= 128 ? 32 : 16);
}

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
  int64_t head_size;  // at most kMaxHeadSize (runtime/device/attention_heads.h)
  int64_t q_stride;   // elements between positions of q, and of its gradient
  int64_t kv_stride;  // the same of k and v
  float scale;        // 1 / sqrt(head_size)
  bool causal;
};

struct AttentionGradArgs {
  AttentionArgs forward;
  const void* dout;
  float* row_sums;  // [batch, heads, positions]: dout . out
  void* dq;         // as q
  void* dk;         // as k
  void* dv;
};

// One function for each type, at FloatIndex(dtype).
struct AttentionRoutines {
  void (*forward[kFloatTypes])(const AttentionArgs&, int64_t batch, int64_t head, int64_t query_tile);
  // row_sums of one batch and head.
  void (*row_sums[kFloatTypes])(const AttentionGradArgs&, int64_t batch, int64_t head);
  // dk and dv of one kv head, and, of f32, dq of its heads.
  void (*backward[kFloatTypes])(const AttentionGradArgs&, int64_t batch, int64_t kv_head);
  // dq of a tile of queries of one head, for 16 bits: its sum over the keys is rounded once, at its end, so
  // it cannot be held in dq while the keys pass by in `backward`. nullptr for f32.
  void (*query_grad[kFloatTypes])(const AttentionGradArgs&, int64_t batch, int64_t head, int64_t query_tile);
};

FT_DECLARE_FOR_EVERY_ISA(AttentionRoutines, kAttention)

}  // namespace ft::cpu
