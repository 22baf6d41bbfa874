// Attention by a library's fused kernels (cuDNN). What it refuses, our own kernel computes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/backends/cuda/driver.h"
#include "runtime/base/dtype.h"

namespace ft::cuda {

// q, out, dout, dq: [batch, positions, heads, head_size]; k, v, dk, dv: [batch, positions, kv_heads,
// head_size]; statistics: f32 [batch, heads, positions], logsumexp of the scaled scores. Row-major, and dense
// unless `side_by_side`: then q, k and v are parts of one tensor [batch, positions, heads + 2 kv_heads,
// head_size], and so are dq, dk and dv.
struct AttentionSpec {
  int64_t batch = 0, positions = 0, heads = 0, kv_heads = 0, head_size = 0;
  bool causal = true;
  float scale = 1.0f;  // of the scores
  DType dtype = DType::kBF16;
  bool side_by_side = false;
  // As ft.attention has them; 0 and false: without.
  int64_t window = 0;  // below `positions`
  float softcap = 0.0f;
  bool alibi = false;
  bool lengths = false, segments = false, dropout = false;
  // Elements between positions of q and dq, and of k, v, dk and dv.
  int64_t QueryStride() const { return (side_by_side ? heads + 2 * kv_heads : heads) * head_size; }
  int64_t KeyStride() const { return (side_by_side ? heads + 2 * kv_heads : kv_heads) * head_size; }
  bool operator==(const AttentionSpec&) const = default;
};

struct AttentionForwardArgs {
  const void *q, *k, *v;
  void* out;
  float* statistics;
  void* workspace;
  bool operator==(const AttentionForwardArgs&) const = default;
};

struct AttentionBackwardArgs {
  const void *q, *k, *v, *out, *dout;
  const float* statistics;
  void *dq, *dk, *dv;
  void* workspace;
  bool operator==(const AttentionBackwardArgs&) const = default;
};

class FusedAttentionForward {
 public:
  virtual ~FusedAttentionForward() = default;
  virtual int Launch(const AttentionForwardArgs& args, StreamHandle stream) = 0;  // a cudaError_t, 0: success
};

class FusedAttentionBackward {
 public:
  virtual ~FusedAttentionBackward() = default;
  virtual int Launch(const AttentionBackwardArgs& args, StreamHandle stream) = 0;
};

class FusedAttention {
 public:
  virtual ~FusedAttention() = default;
  // Unimplemented, with the library's reason, when it has no kernel for the spec or needs more workspace than
  // this.
  virtual absl::StatusOr<std::shared_ptr<FusedAttentionForward>> Forward(const AttentionSpec& spec,
                                                                         uint64_t workspace_bytes) = 0;
  virtual absl::StatusOr<std::shared_ptr<FusedAttentionBackward>> Backward(const AttentionSpec& spec,
                                                                           uint64_t workspace_bytes) = 0;
};

}  // namespace ft::cuda
