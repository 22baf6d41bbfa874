// Attention by tiles of queries and keys; the scores of a tile live on the stack.
#pragma once

#include <cstdint>

#include "runtime/backends/cpu/routines/routines.h"

namespace ft::cpu {

inline constexpr int64_t kMaxHeadSize = 256;

// Queries, and keys, per tile: tiles of a head fit in the second-level cache and in 192 KiB of stack.
constexpr int64_t AttentionTile(int64_t head_size) {
  return head_size <= 64 ? 64 : (head_size <= 128 ? 32 : 16);
}

struct AttentionArgs {
  const float* q;  // [batch, positions, heads * head_size]
  const float* k;  // [batch, positions, kv_heads * head_size]
  const float* v;
  float* out;  // [batch, positions, heads * head_size]
  float* lse;  // [batch, heads, positions]
  int64_t positions;
  int64_t heads;
  int64_t kv_heads;
  int64_t head_size;  // at most kMaxHeadSize
  float scale;        // 1 / sqrt(head_size)
  bool causal;
};

struct AttentionGradArgs {
  AttentionArgs forward;
  const float* dout;
  float* row_sums;  // [batch, heads, positions]: dout . out
  float* dq;
  float* dk;
  float* dv;
};

struct AttentionRoutines {
  void (*forward)(const AttentionArgs&, int64_t batch, int64_t head, int64_t query_tile);
  // row_sums of one batch and head.
  void (*row_sums)(const AttentionGradArgs&, int64_t batch, int64_t head);
  // dq of the heads of one kv head, and its dk and dv.
  void (*backward)(const AttentionGradArgs&, int64_t batch, int64_t kv_head);
};

FT_DECLARE_FOR_EVERY_ISA(AttentionRoutines, kAttention)

}  // namespace ft::cpu
