#include "runtime/backends/cuda/libraries/cudnn_attention_plans.h"

#include <limits>
#include <vector>

#include "fmt/format.h"
#include "runtime/base/cuda_workspace.h"
#include "runtime/base/status_macros.h"

namespace ft::cuda {
namespace {

using Dims = CudnnGraph::Dims;

cudnnDataType_t CudnnTypeOf(DType dtype) {
  return dtype == DType::kBF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_HALF;
}

absl::Status CheckSpec(const AttentionSpec& spec) {
  if (spec.dtype != DType::kBF16 && spec.dtype != DType::kF16) {
    return absl::UnimplementedError("cuDNN's attention is for bf16 and f16");
  }
  if (spec.softcap > 0.0f) return absl::UnimplementedError("its graphs are not asked to cap scores");
  if (spec.alibi) return absl::UnimplementedError("its graphs are not asked for a bias of scores");
  if (spec.lengths) return absl::UnimplementedError("its graphs are not asked for lengths of keys");
  if (spec.segments) return absl::UnimplementedError("its graphs are not asked for segments");
  if (spec.dropout) return absl::UnimplementedError("its random numbers are not those of other devices");
  if (spec.window > 0 && !spec.causal) {
    return absl::UnimplementedError("its windows are asked for with causal attention only");
  }
  return absl::OkStatus();
}

// cuDNN orders dimensions batch, heads, positions, elements; memory is [batch, positions, heads, elements].
struct Shapes {
  int64_t batch, positions, heads, kv_heads, size, query_stride, key_stride;
  explicit Shapes(const AttentionSpec& spec)
      : batch(spec.batch),
        positions(spec.positions),
        heads(spec.heads),
        kv_heads(spec.kv_heads),
        size(spec.head_size),
        query_stride(spec.QueryStride()),
        key_stride(spec.KeyStride()) {}

  Dims QueryDims() const { return {batch, heads, positions, size}; }
  Dims QueryStrides() const { return {positions * query_stride, size, query_stride, 1}; }
  Dims OutStrides() const { return {positions * heads * size, size, heads * size, 1}; }
  Dims KeyDims() const { return {batch, kv_heads, positions, size}; }
  Dims KeyStrides() const { return {positions * key_stride, size, key_stride, 1}; }
  Dims TransposedKeyDims() const { return {batch, kv_heads, size, positions}; }
  Dims TransposedKeyStrides() const { return {positions * key_stride, size, 1, key_stride}; }
  Dims ScoreDims() const { return {batch, heads, positions, positions}; }
  Dims ScoreStrides() const { return Dense(ScoreDims()); }
  Dims RowDims() const { return {batch, heads, positions, 1}; }
  Dims RowStrides() const { return {heads * positions, positions, 1, 1}; }
  static Dims Dense(const Dims& dims) { return {dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1}; }
};

// Scores of keys after the query's position, or out of its window, become minus infinity.
TensorId Mask(CudnnGraph& graph, const AttentionSpec& spec, TensorId scores) {
  const auto keep = [&](TensorId condition, TensorId x) {
    return graph.Select(condition, x, graph.Scalar(-std::numeric_limits<float>::infinity()));
  };
  if (!spec.causal) return scores;
  const TensorId row = graph.Index(scores, 2), column = graph.Index(scores, 3);
  scores = keep(graph.AtLeast(row, column), scores);
  if (spec.window == 0) return scores;
  const TensorId bound = graph.Scalar(static_cast<float>(spec.window));
  const TensorId end = graph.Pointwise(CUDNN_POINTWISE_ADD, graph.Index(scores, 3), bound);
  return keep(graph.Greater(end, graph.Index(scores, 2)), scores);
}

// exp(scores - max) / sum, rounded to `type`, and max + log(sum) per row.
TensorId Softmax(CudnnGraph& graph, const Shapes& shapes, TensorId scores, cudnnDataType_t type,
                 TensorId statistics) {
  const TensorId maximum = graph.Virtual(shapes.RowDims(), shapes.RowStrides());
  graph.Reduce(CUDNN_REDUCE_TENSOR_MAX, scores, maximum);
  const TensorId powers =
      graph.Pointwise(CUDNN_POINTWISE_EXP, graph.Pointwise(CUDNN_POINTWISE_SUB, scores, maximum));
  const TensorId sum = graph.Virtual(shapes.RowDims(), shapes.RowStrides());
  graph.Reduce(CUDNN_REDUCE_TENSOR_ADD, powers, sum);
  graph.PointwiseInto(CUDNN_POINTWISE_ADD, maximum, graph.Pointwise(CUDNN_POINTWISE_LOG, sum), statistics);
  const TensorId probabilities = graph.Virtual(shapes.ScoreDims(), shapes.ScoreStrides(), type);
  graph.PointwiseInto(CUDNN_POINTWISE_DIV, powers, sum, probabilities);
  return probabilities;
}

// x, [.., queries, keys] in f32, as [.., keys, queries] in `type`.
TensorId Transposed(CudnnGraph& graph, const Shapes& shapes, TensorId x, cudnnDataType_t type) {
  const Dims dense = shapes.ScoreStrides();
  const TensorId y = graph.Virtual(shapes.ScoreDims(), {dense[0], dense[1], dense[3], dense[2]}, type);
  graph.Reshape(x, y);
  return y;
}

// result[.., keys, :] = transposed x; with shared heads the heads of a group are added up.
void KeyGradient(CudnnGraph& graph, const Shapes& shapes, TensorId transposed, TensorId x,
                 cudnnDataType_t type, TensorId result) {
  if (shapes.heads == shapes.kv_heads) return graph.Matmul(transposed, x, result);
  const TensorId of_heads = graph.Virtual(shapes.QueryDims(), Shapes::Dense(shapes.QueryDims()), type);
  graph.Matmul(transposed, x, of_heads);
  graph.Reduce(CUDNN_REDUCE_TENSOR_ADD, of_heads, result);
}

// Numbers and knobs of the engines behind QueryGradient::kOrdered; empty where there is none.
std::vector<CudnnEngine> OrderedEngines(const CudnnApi& api, int compute_capability) {
  const size_t version = api.get_version();
  const bool tiles_are_knobs = version >= 92300;
  if (compute_capability >= 100) {
    const int64_t id = compute_capability > 103 ? 17 : 5;
    if (!tiles_are_knobs) return {{id, {{CUDNN_KNOB_TYPE_KERNEL_CFG, 31}, {CUDNN_KNOB_TYPE_STAGES, 2}}}};
    return {{id,
             {{CUDNN_KNOB_TYPE_TILE_M, 3},
              {CUDNN_KNOB_TYPE_TILE_N, 2},
              {CUDNN_KNOB_TYPE_KERNEL_CFG, 2},
              {CUDNN_KNOB_TYPE_STREAM_K, 0},
              {CUDNN_KNOB_TYPE_TILE_CGA_M, 0},
              {CUDNN_KNOB_TYPE_STAGES, 2}}}};
  }
  if (compute_capability >= 90 && version >= 92500) {
    return {{6,
             {{CUDNN_KNOB_TYPE_TILE_M, 2},
              {CUDNN_KNOB_TYPE_TILE_N, 1},
              {CUDNN_KNOB_TYPE_KERNEL_CFG, 2},
              {CUDNN_KNOB_TYPE_STREAM_K, 0},
              {CUDNN_KNOB_TYPE_TILE_CGA_M, 0},
              {CUDNN_KNOB_TYPE_STAGES, 4}}}};
  }
  return {};
}

}  // namespace

absl::StatusOr<AttentionForwardPlan> AttentionForwardPlan::Create(const CudnnApi& api,
                                                                  const CudnnTarget& target,
                                                                  const AttentionSpec& spec,
                                                                  uint64_t workspace_bytes) {
  FT_RETURN_IF_ERROR(CheckSpec(spec));
  const Shapes shapes(spec);
  const cudnnDataType_t type = CudnnTypeOf(spec.dtype);
  CudnnGraph graph(api);
  Tensors tensors;
  tensors.q = graph.Tensor(shapes.QueryDims(), shapes.QueryStrides(), type);
  tensors.k = graph.Tensor(shapes.TransposedKeyDims(), shapes.TransposedKeyStrides(), type);
  tensors.v = graph.Tensor(shapes.KeyDims(), shapes.KeyStrides(), type);
  tensors.out = graph.Tensor(shapes.QueryDims(), shapes.OutStrides(), type);
  tensors.statistics = graph.Tensor(shapes.RowDims(), shapes.RowStrides(), CUDNN_DATA_FLOAT);

  TensorId scores = graph.Virtual(shapes.ScoreDims(), shapes.ScoreStrides());
  graph.Matmul(tensors.q, tensors.k, scores);
  scores = graph.Pointwise(CUDNN_POINTWISE_MUL, scores, graph.Scalar(spec.scale));
  scores = Mask(graph, spec, scores);
  const TensorId probabilities = Softmax(graph, shapes, scores, type, tensors.statistics);
  graph.Matmul(probabilities, tensors.v, tensors.out);

  FT_ASSIGN_OR_RETURN(CudnnPlan plan, graph.Plan(target, workspace_bytes, {}, /*heuristics=*/true));
  return AttentionForwardPlan(std::move(plan), tensors);
}

absl::StatusOr<CudnnDescriptor> AttentionForwardPlan::Bind(const AttentionForwardArgs& args) const {
  return plan_.Bind({{tensors_.q, args.q},
                     {tensors_.k, args.k},
                     {tensors_.v, args.v},
                     {tensors_.out, args.out},
                     {tensors_.statistics, args.statistics}},
                    args.workspace);
}

AttentionBackwardPlan::Tensors AttentionBackwardPlan::AddTensors(CudnnGraph& graph, const AttentionSpec& spec,
                                                                 bool accumulates) {
  const Shapes shapes(spec);
  const cudnnDataType_t type = CudnnTypeOf(spec.dtype);
  const auto query = [&] { return graph.Tensor(shapes.QueryDims(), shapes.QueryStrides(), type); };
  const auto out = [&] { return graph.Tensor(shapes.QueryDims(), shapes.OutStrides(), type); };
  const auto rows = [&] { return graph.Tensor(shapes.RowDims(), shapes.RowStrides(), CUDNN_DATA_FLOAT); };
  Tensors tensors;
  tensors.q = query();
  tensors.k = graph.Tensor(shapes.TransposedKeyDims(), shapes.TransposedKeyStrides(), type);
  tensors.v = graph.Tensor(shapes.TransposedKeyDims(), shapes.TransposedKeyStrides(), type);
  tensors.out = out();
  tensors.dout = out();
  tensors.statistics = rows();
  tensors.dq = query();
  tensors.dk = graph.Tensor(shapes.KeyDims(), shapes.KeyStrides(), type);
  tensors.dv = graph.Tensor(shapes.KeyDims(), shapes.KeyStrides(), type);
  tensors.row_sums = rows();
  if (accumulates) {
    tensors.dq_sum = graph.Tensor(shapes.QueryDims(), Shapes::Dense(shapes.QueryDims()), CUDNN_DATA_FLOAT);
  }
  return tensors;
}

void AttentionBackwardPlan::AddOperations(CudnnGraph& graph, const AttentionSpec& spec,
                                          const Tensors& tensors) {
  const Shapes shapes(spec);
  const cudnnDataType_t type = CudnnTypeOf(spec.dtype);
  const TensorId products = graph.Virtual(shapes.QueryDims(), Shapes::Dense(shapes.QueryDims()));
  graph.PointwiseInto(CUDNN_POINTWISE_MUL, tensors.dout, tensors.out, products);
  const TensorId sums = graph.Virtual(shapes.RowDims(), shapes.RowStrides());
  graph.Reduce(CUDNN_REDUCE_TENSOR_ADD, products, sums);
  // The engines look for a scaling here (by the share that dropout keeps).
  graph.PointwiseInto(CUDNN_POINTWISE_MUL, sums, graph.Scalar(1.0f), tensors.row_sums);

  const TensorId scale = graph.Scalar(spec.scale);
  TensorId scores = graph.Virtual(shapes.ScoreDims(), shapes.ScoreStrides());
  graph.Matmul(tensors.q, tensors.k, scores);
  scores = graph.Pointwise(CUDNN_POINTWISE_MUL, scores, scale);
  scores = graph.Pointwise(CUDNN_POINTWISE_SUB, scores, tensors.statistics);
  scores = Mask(graph, spec, scores);
  const TensorId probabilities = graph.Pointwise(CUDNN_POINTWISE_EXP, scores);
  KeyGradient(graph, shapes, Transposed(graph, shapes, probabilities, type), tensors.dout, type, tensors.dv);

  TensorId dscores = graph.Virtual(shapes.ScoreDims(), shapes.ScoreStrides());
  graph.Matmul(tensors.dout, tensors.v, dscores);
  dscores = graph.Pointwise(CUDNN_POINTWISE_SUB, dscores, tensors.row_sums);
  dscores = graph.Pointwise(CUDNN_POINTWISE_MUL, dscores, probabilities);
  dscores = graph.Pointwise(CUDNN_POINTWISE_MUL, dscores, scale);
  KeyGradient(graph, shapes, Transposed(graph, shapes, dscores, type), tensors.q, type, tensors.dk);

  const TensorId keys = graph.Virtual(shapes.KeyDims(), shapes.KeyStrides());
  graph.Reshape(tensors.k, keys);
  if (tensors.dq_sum == 0) return graph.Matmul(dscores, keys, tensors.dq);
  graph.Matmul(dscores, keys, tensors.dq_sum);
  graph.PointwiseInto(CUDNN_POINTWISE_IDENTITY, tensors.dq_sum, tensors.dq);
}

absl::StatusOr<AttentionBackwardPlan> AttentionBackwardPlan::Create(
    const CudnnApi& api, const CudnnTarget& target, int compute_capability, const AttentionSpec& spec,
    QueryGradient query_gradient, uint64_t workspace_bytes) {
  FT_RETURN_IF_ERROR(CheckSpec(spec));
  const bool ordered = query_gradient == QueryGradient::kOrdered;
  std::vector<CudnnEngine> engines;
  if (ordered) engines = OrderedEngines(api, compute_capability);
  if (ordered && engines.empty()) return absl::UnimplementedError("no engine with ordered sums");
  // Blackwell's engine brings its own accumulator when it adds in order.
  const bool accumulates = query_gradient == QueryGradient::kAtomic || (ordered && compute_capability < 100);
  const int64_t rows = spec.batch * spec.heads * spec.positions;
  const auto row_sums_bytes = static_cast<uint64_t>(cuda_workspace::Aligned(rows * 4));
  uint64_t own_bytes = row_sums_bytes;
  if (accumulates) own_bytes += static_cast<uint64_t>(cuda_workspace::Aligned(rows * spec.head_size * 4));
  if (own_bytes > workspace_bytes) {
    return absl::UnimplementedError(
        fmt::format("needs more than {} bytes of workspace, there are {}", own_bytes, workspace_bytes));
  }
  CudnnGraph graph(api);
  const Tensors tensors = AddTensors(graph, spec, accumulates);
  AddOperations(graph, spec, tensors);
  FT_ASSIGN_OR_RETURN(CudnnPlan plan, graph.Plan(target, workspace_bytes - own_bytes, engines, !ordered));
  return AttentionBackwardPlan(std::move(plan), tensors, row_sums_bytes, own_bytes);
}

absl::StatusOr<CudnnDescriptor> AttentionBackwardPlan::Bind(const AttentionBackwardArgs& args) const {
  char* const workspace = static_cast<char*>(args.workspace);
  std::vector<std::pair<TensorId, const void*>> addresses = {
      {tensors_.q, args.q},          {tensors_.k, args.k},       {tensors_.v, args.v},
      {tensors_.out, args.out},      {tensors_.dout, args.dout}, {tensors_.statistics, args.statistics},
      {tensors_.dq, args.dq},        {tensors_.dk, args.dk},     {tensors_.dv, args.dv},
      {tensors_.row_sums, workspace}};
  if (tensors_.dq_sum != 0) addresses.emplace_back(tensors_.dq_sum, workspace + row_sums_bytes_);
  return plan_.Bind(addresses, workspace + own_bytes_);
}

}  // namespace ft::cuda
