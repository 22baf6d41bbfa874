// The operands of attention and its gradient, whether q, k and v are three tensors or lie side by side in
// one: checked once, for all devices.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "runtime/base/attention_span.h"
#include "runtime/base/checked.h"
#include "runtime/base/workspace.h"
#include "runtime/device/check.h"
#include "runtime/device/kernel.h"

namespace ft {

// q (and dq) are [batch, positions, heads * size] and k and v (dk and dv) [batch, positions, kv_heads *
// size]; their positions lie q_stride and kv_stride elements apart. Everything else is dense.
struct AttentionHeads {
  Tensor q, k, v;
  int64_t batch = 0, positions = 0, heads = 0, kv_heads = 0, size = 0;  // size of a head: 1 to kMaxHeadSize
  int64_t q_stride = 0, kv_stride = 0;
  bool causal = false;  // position t sees positions up to t
  std::optional<int64_t> window;
  AttentionSpan span;                // what both leave, among these positions
  float scale = 0.0f;                // s: of the products of q and k
  float softcap = 0.0f;              // c: s becomes c tanh(s / c); 0: it stays s
  bool alibi = false;                // AlibiSlope(head, heads) times (key's position - query's) is added to s
  const int32_t* lengths = nullptr;  // [batch]: keys that count; nullptr: all
  const int32_t* segments = nullptr;  // [batch, positions]: ids; nullptr: there is one
  DropoutRule dropout;                // of the probabilities

  int64_t rows() const { return batch * heads * positions; }
  int64_t probabilities() const { return CheckedMul(rows(), positions); }
  AttentionSizes sizes() const {
    return {batch, positions, heads, kv_heads, size, q.dtype, segments != nullptr};
  }
};

inline constexpr int64_t kMaxHeadSize = 256;
inline constexpr int64_t kMaxHeads = int64_t{1} << 24;

// The greatest power of two that is at most `heads`: the heads whose slopes are a sequence of their own.
constexpr int64_t AlibiHeads(int64_t heads) {
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(heads)));
}
// O. Press et al., "Train Short, Test Long", 2022, as BLOOM has it: see ft.attention.
double AlibiSlope(int64_t head, int64_t heads);

// How the inputs of an op come: as tensors q, k and v, or as one [batch, positions, (heads + 2 kv_heads) *
// size] that has q, then k, then v of each position.
enum class AttentionInputs { kSeparate, kSideBySide };

struct AttentionForward {
  AttentionHeads heads;
  Tensor out, lse;  // [batch, positions, heads * size], f32 [batch, heads, positions]
};

struct AttentionBackward {
  AttentionHeads heads;
  Tensor dout, out, lse;
  AttentionHeads gradients;  // dq, dk and dv, where q, k and v would lie
};

// Operands of attention and qkv_attention, of attention_grad and qkv_attention_grad, in the order of ops.td,
// with their attributes, those that are optional where the op has them; workspaces are left to the caller.
absl::StatusOr<AttentionForward> ReadAttention(const KernelOperands& operands,
                                               const KernelAttributes& attributes, AttentionInputs inputs);
absl::StatusOr<AttentionBackward> ReadAttentionGrad(const KernelOperands& operands,
                                                    const KernelAttributes& attributes,
                                                    AttentionInputs inputs);

}  // namespace ft
