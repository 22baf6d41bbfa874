// The operands of attention and its gradient, whether q, k and v are three tensors or lie side by side in
// one: checked once, for all devices.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "runtime/device/kernel.h"

namespace ft {

// q (and dq) are [batch, positions, heads * size] and k and v (dk and dv) [batch, positions, kv_heads *
// size]; their positions lie q_stride and kv_stride elements apart. Everything else is dense.
struct AttentionHeads {
  Tensor q, k, v;
  int64_t batch = 0, positions = 0, heads = 0, kv_heads = 0, size = 0;  // size of a head: 1 to kMaxHeadSize
  int64_t q_stride = 0, kv_stride = 0;
  bool causal = false;  // position t sees positions up to t
  float scale = 0.0f;   // of the scores: 1 / sqrt(size)

  int64_t rows() const { return batch * heads * positions; }
};

inline constexpr int64_t kMaxHeadSize = 256;

// Of three tensors, with the attributes heads, kv_heads and causal.
absl::StatusOr<AttentionHeads> CheckAttention(const Tensor& q, const Tensor& k, const Tensor& v,
                                              const KernelAttributes& attributes);

// Of one tensor [batch, positions, (heads + 2 kv_heads) * size]: q, then k, then v of each position.
absl::StatusOr<AttentionHeads> CheckQkvAttention(const Tensor& qkv, const KernelAttributes& attributes);

}  // namespace ft
