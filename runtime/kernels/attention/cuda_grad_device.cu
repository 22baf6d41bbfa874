// The gradient of attention: probabilities are computed again from lse. Every block sums what it stores by
// itself, in one order: a tile of queries over all keys for dq, a tile of keys over all queries, of all heads
// that share them, for dk and dv.
#include "runtime/kernels/attention/cuda_tile.h"

namespace ft::cuda {
namespace {

constexpr int kRowSumThreads = 256;

// row_sums = dout . out of a row of a head; a warp each, rows in the order of memory.
template <typename T>
__global__ void __launch_bounds__(kRowSumThreads) RowSumsKernel(AttentionGradArgs args, int rows) {
  const AttentionShape& shape = args.shape;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int row = static_cast<int>(blockIdx.x * (kRowSumThreads / kWarp) + threadIdx.x / kWarp);
  if (row >= rows) return;  // the whole warp
  const T* dout = static_cast<const T*>(args.dout) + int64_t{row} * shape.head_size;
  const T* out = static_cast<const T*>(args.out) + int64_t{row} * shape.head_size;
  float sum = 0.0f;
#pragma unroll 4
  for (int i = lane; i < shape.head_size; i += kWarp) sum = __fmaf_rn(ToFloat(dout[i]), ToFloat(out[i]), sum);
  sum = WarpReduce<Sum>(sum);
  const int head = row % shape.heads, position = row / shape.heads;
  const int batch = position / shape.positions, t = position % shape.positions;
  if (lane == 0) args.row_sums[(batch * shape.heads + head) * shape.positions + t] = sum;
}

// Of a product of a query and a key that lies `distance` positions behind it.
__device__ __forceinline__ float Probability(const AttentionShape& shape, bool visible, float product,
                                             int distance, float slope2, float lse) {
  const float offset = slope2 * static_cast<float>(distance) - lse * kLog2E;
  return visible ? exp2f(__fmaf_rn(Capped(shape, product), Outer(shape) * kLog2E, offset)) : 0.0f;
}

// Of the product where scores are not capped; p is the probability, dp = dout . value.
__device__ __forceinline__ float ScoreGrad(const AttentionShape& shape, bool visible, float p, float dp,
                                           float row_sum) {
  return visible ? p * (dp - row_sum) * shape.scale : 0.0f;
}

// What a cap multiplies that by: 1 - tanh^2.
__device__ __forceinline__ float CapGrad(const AttentionShape& shape, float product) {
  if (shape.softcap == 0.0f) return 1.0f;
  const float capped = Capped(shape, product);
  return 1.0f - capped * capped;
}

// dq of a tile of queries.
template <int kHead, bool kOptions>
__global__ void __launch_bounds__(kAttentionThreads, kHead <= 128 ? 2 : 1)
    QueryGradKernel(AttentionGradArgs args, bool packed) {
  using Tile = AttentionTile<kHead>;
  const AttentionShape& shape = args.shape;
  const int positions = shape.positions, size = shape.head_size;
  const QueryTile at = QueryTileOfBlock<Tile::kRows, Tile::kColumns, kOptions>(shape, args.options);
  float* queries = DynamicShared<float>();
  float* douts = queries + Tile::kRows * Tile::kStride;
  float* keys = douts + Tile::kRows * Tile::kStride;
  float* values = keys + Tile::kColumns * Tile::kStride;
  float* weights = values + Tile::kColumns * Tile::kStride;
  float dq[Tile::kI][Tile::kC];
  Clear(dq);
  float lse[Tile::kI], row_sum[Tile::kI];
#pragma unroll
  for (int i = 0; i < Tile::kI; ++i) {
    const int query = at.begin + ThreadY() + kSide * i, row = at.batch_head * positions + query;
    lse[i] = query < positions ? args.lse[row] : 0.0f;
    row_sum[i] = query < positions ? args.row_sums[row] : 0.0f;
  }
  const int64_t offset = RowOffset(at.q, at.begin);
  LoadTile<kHead, Tile::kRows>(static_cast<const float*>(args.q) + offset, at.q.stride, at.present, size,
                               packed, queries);
  LoadTile<kHead, Tile::kRows>(static_cast<const float*>(args.dout) + RowOffset(at.out, at.begin),
                               at.out.stride, at.present, size, packed, douts);
#pragma unroll 1
  for (int key_begin = at.key_begin; key_begin < at.key_end; key_begin += Tile::kColumns) {
    __syncthreads();  // the tiles before were read by all
    LoadTiles<kHead, Tile::kColumns>(args.k, args.v, RowOffset(at.kv, key_begin), at.kv.stride,
                                     Smaller(Tile::kColumns, (kOptions ? at.key_end : positions) - key_begin),
                                     size, packed, keys, values);
    __syncthreads();
    float scores[Tile::kI][Tile::kJ], gradients[Tile::kI][Tile::kJ];
    RowProducts<Tile::kStride>(queries, keys, Depth(shape), scores);
    RowProducts<Tile::kStride>(douts, values, Depth(shape), gradients);
    if (kOptions && args.options.threshold > 0)
      DropTile(shape, args.options, at.batch_head * positions, at.begin, key_begin, gradients);
#pragma unroll
    for (int i = 0; i < Tile::kI; ++i) {
      const int query = at.begin + ThreadY() + kSide * i;
      const KeyRange seen = KeysSeen<kOptions>(shape, at.sequence, query);
#pragma unroll
      for (int j = 0; j < Tile::kJ; ++j) {
        const int key = key_begin + ThreadX() + kSide * j;
        const bool visible = Visible<kOptions>(shape, seen, query, key);
        const float p = Probability(shape, visible, scores[i][j], key - query, at.slope2, lse[i]);
        gradients[i][j] =
            ScoreGrad(shape, visible, p, gradients[i][j], row_sum[i]) * CapGrad(shape, scores[i][j]);
      }
    }
    AddThrough<kHead, Tile::kColumns>(weights, gradients, keys, dq);
  }
  StoreRows<kHead>(dq, static_cast<float*>(args.dq) + offset, at.q.stride, at.present, size, packed);
}

// Products [keys, queries] become probabilities, negative where dropout drops them. head_row is that of the
// head's first query in lse.
template <bool kOptions, int kI, int kJ>
__device__ __forceinline__ void KeyProbabilities(const AttentionGradArgs& args, const Sequence& sequence,
                                                 int head_row, float slope2, int key_begin, int query_begin,
                                                 float (&scores)[kI][kJ]) {
  const uint32_t kept = KeptOfTile<kOptions, kI * kJ>(args.shape, args.options, head_row, [=](int n) {
    return QueryAndKey{query_begin + ThreadX() + kSide * (n % kJ), key_begin + ThreadY() + kSide * (n / kJ)};
  });
#pragma unroll
  for (int j = 0; j < kJ; ++j) {
    const int query = query_begin + ThreadX() + kSide * j;
    const float lse = query < args.shape.positions ? args.lse[head_row + query] : 0.0f;
    const KeyRange seen = KeysSeen<kOptions>(args.shape, sequence, query);
#pragma unroll
    for (int i = 0; i < kI; ++i) {
      const int key = key_begin + ThreadY() + kSide * i;
      const bool visible = Visible<kOptions>(args.shape, seen, query, key);
      scores[i][j] = Probability(args.shape, visible, scores[i][j], key - query, slope2, lse);
      if (kOptions && (kept >> (i * kJ + j) & 1u) == 0) scores[i][j] = -scores[i][j];
    }
  }
}

// dp = value . dout become gradients of the scores. The probabilities are read where StoreWeights left them,
// so that they need no registers meanwhile.
template <int kColumns, bool kOptions, int kI, int kJ>
__device__ __forceinline__ void KeyScoreGrads(const AttentionGradArgs& args, const Sequence& sequence,
                                              int head_row, int key_begin, int query_begin,
                                              const float* probabilities, float (&gradients)[kI][kJ]) {
#pragma unroll
  for (int j = 0; j < kJ; ++j) {
    const int column = ThreadX() + kSide * j, query = query_begin + column;
    const float row_sum = query < args.shape.positions ? args.row_sums[head_row + query] : 0.0f;
    const KeyRange seen = KeysSeen<kOptions>(args.shape, sequence, query);
#pragma unroll
    for (int i = 0; i < kI; ++i) {
      const int row = ThreadY() + kSide * i;
      const bool visible = Visible<kOptions>(args.shape, seen, query, key_begin + row);
      float p = probabilities[row * (kColumns + kSkew) + column], dp = gradients[i][j];
      if (kOptions) dp = p < 0.0f ? 0.0f : dp * args.options.factor;
      if (kOptions) p = fabsf(p);
      gradients[i][j] = ScoreGrad(args.shape, visible, p, dp, row_sum);
    }
  }
}

// The gradients of products [keys, queries] that are capped. The products are made again: to keep them would
// take registers from the sums.
template <int kStride, int kI, int kJ>
__device__ __forceinline__ void CapGradients(const AttentionShape& shape, const float* keys,
                                             const float* queries, float (&gradients)[kI][kJ]) {
  float products[kI][kJ];
  RowProducts<kStride>(keys, queries, Depth(shape), products);
#pragma unroll
  for (int i = 0; i < kI; ++i) {
#pragma unroll
    for (int j = 0; j < kJ; ++j) gradients[i][j] *= CapGrad(shape, products[i][j]);
  }
}

// dk and dv of a tile of keys: all queries that see one of them, one head after the other.
template <int kHead, bool kCapped, bool kOptions>
__global__ void __launch_bounds__(kAttentionThreads, kHead <= 128 ? 2 : 1)
    KeyGradKernel(AttentionGradArgs args, bool packed) {
  using Tile = AttentionTile<kHead>;
  const AttentionShape& shape = args.shape;
  const int positions = shape.positions, size = shape.head_size;
  const KeyTile at = KeyTileOfBlock<Tile::kRows, Tile::kColumns, kOptions>(shape, args.options);
  const int group = shape.heads / shape.kv_heads;
  float* keys = DynamicShared<float>();
  float* values = keys + Tile::kRows * Tile::kStride;
  float* queries = values + Tile::kRows * Tile::kStride;
  float* douts = queries + Tile::kColumns * Tile::kStride;
  float* weights = douts + Tile::kColumns * Tile::kStride;
  float dk[Tile::kI][Tile::kC], dv[Tile::kI][Tile::kC];
  Clear(dk);
  Clear(dv);
  const int64_t offset = RowOffset(at.kv, at.begin);
  LoadTiles<kHead, Tile::kRows>(args.k, args.v, offset, at.kv.stride, at.present, size, packed, keys, values);
#pragma unroll 1
  for (int head = at.kv_head * group; head < (at.kv_head + 1) * group; ++head) {
    const HeadRows q = RowsOfHead(shape, at.batch, head, shape.q_stride);
    const HeadRows out = RowsOfHead(shape, at.batch, head, shape.heads * size);
    const int head_row = (at.batch * shape.heads + head) * positions;
    const float slope2 = Slope(shape, head) * kLog2E;
#pragma unroll 1
    for (int query = at.query_begin; query < at.query_end; query += Tile::kColumns) {
      __syncthreads();  // the tiles before were read by all
      const int queries_present = Smaller(Tile::kColumns, positions - query);
      LoadTile<kHead, Tile::kColumns>(static_cast<const float*>(args.q) + RowOffset(q, query), q.stride,
                                      queries_present, size, packed, queries);
      LoadTile<kHead, Tile::kColumns>(static_cast<const float*>(args.dout) + RowOffset(out, query),
                                      out.stride, queries_present, size, packed, douts);
      __syncthreads();
      float scores[Tile::kI][Tile::kJ];
      RowProducts<Tile::kStride>(keys, queries, Depth(shape), scores);
      KeyProbabilities<kOptions>(args, at.sequence, head_row, slope2, at.begin, query, scores);
      AddThrough<kHead, Tile::kColumns, kOptions>(weights, scores, douts, dv);
      RowProducts<Tile::kStride>(values, douts, Depth(shape), scores);
      KeyScoreGrads<Tile::kColumns, kOptions>(args, at.sequence, head_row, at.begin, query, weights, scores);
      if constexpr (kCapped) CapGradients<Tile::kStride>(shape, keys, queries, scores);
      AddThrough<kHead, Tile::kColumns>(weights, scores, queries, dk);
    }
  }
#pragma unroll
  for (int i = 0; kOptions && i < Tile::kI; ++i) {
#pragma unroll
    for (int c = 0; c < Tile::kC; ++c) dv[i][c] *= args.options.factor;
  }
  StoreRows<kHead>(dk, static_cast<float*>(args.dk) + offset, at.kv.stride, at.present, size, packed);
  StoreRows<kHead>(dv, static_cast<float*>(args.dv) + offset, at.kv.stride, at.present, size, packed);
}

template <int kHead>
constexpr size_t GradSharedBytes() {
  using Tile = AttentionTile<kHead>;
  return (2 * (Tile::kRows + Tile::kColumns) * Tile::kStride + Tile::kWeightFloats) * sizeof(float);
}

int RowSums(const AttentionGradArgs& args, StreamHandle stream) {
  const AttentionShape& shape = args.shape;
  const int rows = shape.batch * shape.positions * shape.heads;
  constexpr int kWarps = kRowSumThreads / kWarp;
  return WithFloatType(shape.dtype, [&]<typename T>() {
    return Launch(RowSumsKernel<T>,
                  {.grid_x = static_cast<unsigned>((rows + kWarps - 1) / kWarps), .block_x = kRowSumThreads},
                  stream, args, rows);
  });
}

template <int kHead, bool kOptions>
int Backward(const AttentionGradArgs& args, StreamHandle stream) {
  using Tile = AttentionTile<kHead>;
  const AttentionShape& shape = args.shape;
  const int64_t tiles = Tiles(shape.positions, Tile::kRows);
  const bool packed =
      CanPackHeads<float>(shape, {args.q, args.k, args.v, args.dout, args.dq, args.dk, args.dv});
  LaunchShape launch = {.grid_x = static_cast<unsigned>(tiles * shape.batch * shape.heads),
                        .block_x = kAttentionThreads,
                        .shared_bytes = GradSharedBytes<kHead>()};
  if (const int failed = Launch(QueryGradKernel<kHead, kOptions>, launch, stream, args, packed); failed != 0)
    return failed;
  launch.grid_x = static_cast<unsigned>(tiles * shape.batch * shape.kv_heads);
  return Launch(
      shape.softcap > 0.0f ? KeyGradKernel<kHead, true, kOptions> : KeyGradKernel<kHead, false, kOptions>,
      launch, stream, args, packed);
}

}  // namespace

int AttentionGrad(const AttentionGradArgs& args, StreamHandle stream) {
  if (const int error = FindSegments(args.options, args.shape.batch, args.shape.positions, stream);
      error != 0)
    return error;
  if (const int error = RowSums(args, stream); error != 0) return error;
  if (args.shape.dtype != DType::kF32) return TensorAttentionGrad(args, stream);
  return WithHeadTile(args.shape.head_size, [&]<int kHead>() {
    return args.options.any() ? Backward<kHead, true>(args, stream) : Backward<kHead, false>(args, stream);
  });
}

size_t AttentionGradSharedBytes(int head_size, DType dtype) {
  if (dtype != DType::kF32) return TensorAttentionGradSharedBytes(head_size);
  return WithHeadTile(head_size, [&]<int kHead>() { return GradSharedBytes<kHead>(); });
}

}  // namespace ft::cuda
