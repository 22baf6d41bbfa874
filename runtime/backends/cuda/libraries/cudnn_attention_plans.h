// Attention as graphs of matrix products, reductions and pointwise operations in the form that cuDNN's fused
// attention engines recognise (documented under "Fused Flash Attention" in cuDNN's developer guide).
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "runtime/backends/cuda/fused_attention.h"
#include "runtime/backends/cuda/libraries/cudnn_graph.h"

namespace ft::cuda {

class AttentionForwardPlan {
 public:
  // `target` must outlive the plan. Errors: see FusedAttention.
  static absl::StatusOr<AttentionForwardPlan> Create(const CudnnApi& api, const CudnnTarget& target,
                                                     const AttentionSpec& spec, uint64_t workspace_bytes);

  uint64_t workspace_bytes() const { return plan_.workspace_bytes(); }
  const CudnnPlan& plan() const { return plan_; }
  absl::StatusOr<CudnnDescriptor> Bind(const AttentionForwardArgs& args) const;

 private:
  struct Tensors {
    TensorId q, k, v, out, statistics;
  };
  AttentionForwardPlan(CudnnPlan plan, const Tensors& tensors) : plan_(std::move(plan)), tensors_(tensors) {}

  CudnnPlan plan_;
  Tensors tensors_;
};

// How the gradient of q, a sum over blocks of keys that run at the same time, is added up.
//
// cuDNN's usual engines add blocks with float atomics, in the order in which they happen to finish: dq
// differs in its last bits from run to run (dk and dv do not). No attribute or numerical note of the
// interface tells or asks for another order. What does, as NVIDIA's open cudnn-frontend documents by its code
// (1.32, "deterministic"):
// - kProducts: without an f32 accumulator in the graph, the engines of Ampere and Hopper write the gradients
// of
//   the scores, about batch * heads * positions^2 halves, to the workspace and multiply them by k afterwards.
// - kOrdered: an engine in which blocks wait for their turn, chosen by its number and knobs: Blackwell's, and
//   since 9.25 Hopper's. Hardly more workspace than kAtomic.
enum class QueryGradient { kAtomic, kProducts, kOrdered };

class AttentionBackwardPlan {
 public:
  // `compute_capability`: 90 for 9.0. Only kOrdered looks at it.
  static absl::StatusOr<AttentionBackwardPlan> Create(const CudnnApi& api, const CudnnTarget& target,
                                                      int compute_capability, const AttentionSpec& spec,
                                                      QueryGradient query_gradient, uint64_t workspace_bytes);

  // Of the graph's buffers and of the plan.
  uint64_t workspace_bytes() const { return own_bytes_ + plan_.workspace_bytes(); }
  const CudnnPlan& plan() const { return plan_; }
  absl::StatusOr<CudnnDescriptor> Bind(const AttentionBackwardArgs& args) const;

 private:
  struct Tensors {
    TensorId q, k, v, out, dout, statistics, dq, dk, dv, row_sums, dq_sum = 0;
  };
  static Tensors AddTensors(CudnnGraph& graph, const AttentionSpec& spec, bool accumulates);
  static void AddOperations(CudnnGraph& graph, const AttentionSpec& spec, const Tensors& tensors);
  AttentionBackwardPlan(CudnnPlan plan, const Tensors& tensors, uint64_t row_sums_bytes, uint64_t own_bytes)
      : plan_(std::move(plan)), tensors_(tensors), row_sums_bytes_(row_sums_bytes), own_bytes_(own_bytes) {}

  CudnnPlan plan_;
  Tensors tensors_;
  // The workspace: row sums of dout * out, f32 [batch, heads, positions]; unless kProducts, dq as f32; the
  // plan's.
  uint64_t row_sums_bytes_, own_bytes_;
};

}  // namespace ft::cuda
