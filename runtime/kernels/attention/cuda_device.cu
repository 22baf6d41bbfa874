// After T. Dao et al., "FlashAttention", 2022: softmax by tiles of keys with a running maximum. Exponents are
// kept to base 2.
#include <cfloat>

#include "runtime/kernels/attention/cuda_tile.h"

namespace ft::cuda {
namespace {

// Scores become probabilities relative to the running maximum of their row; earlier sums are rescaled to it.
template <int kI, int kJ, int kC>
__device__ __forceinline__ void SoftmaxTile(float (&scores)[kI][kJ], float (&maximum)[kI], float (&total)[kI],
                                            float (&sums)[kI][kC]) {
#pragma unroll
  for (int i = 0; i < kI; ++i) {
    float highest = maximum[i];
#pragma unroll
    for (int j = 0; j < kJ; ++j) highest = Max()(highest, scores[i][j]);
    highest = HalfWarpReduce<Max>(highest);
    float sum = 0.0f;
#pragma unroll
    for (int j = 0; j < kJ; ++j) {
      scores[i][j] = exp2f(scores[i][j] - highest);
      sum += scores[i][j];
    }
    const float correction = exp2f(maximum[i] - highest);
    total[i] = __fmaf_rn(total[i], correction, HalfWarpReduce<Sum>(sum));
    maximum[i] = highest;
#pragma unroll
    for (int c = 0; c < kC; ++c) sums[i][c] *= correction;
  }
}

// Products of a tile become scores over ln 2; those that are not seen become minus infinity.
template <bool kOptions, int kI, int kJ>
__device__ __forceinline__ void ScoreTile(const AttentionShape& shape, const QueryTile& at, int key_begin,
                                          float (&scores)[kI][kJ]) {
  const float scale = Outer(shape) * kLog2E;
#pragma unroll
  for (int i = 0; i < kI; ++i) {
    // Rows behind the last position are computed with the others, and not stored: they see what that one
    // sees.
    const int query = Smaller(at.begin + ThreadY() + kSide * i, shape.positions - 1);
    const KeyRange seen = KeysSeen<kOptions>(shape, at.sequence, query);
#pragma unroll
    for (int j = 0; j < kJ; ++j) {
      const int key = key_begin + ThreadX() + kSide * j;
      const float bias = at.slope2 * static_cast<float>(key - query);
      const float score = Capped(shape, scores[i][j]) * scale + bias;
      scores[i][j] = Visible<kOptions>(shape, seen, query, key) ? score : -INFINITY;
    }
  }
}

// One block for a tile of queries of a head.
template <int kHead, bool kOptions>
__global__ void __launch_bounds__(kAttentionThreads, 2) ForwardKernel(AttentionArgs args, bool packed) {
  using Tile = AttentionTile<kHead>;
  const AttentionShape& shape = args.shape;
  const int positions = shape.positions, size = shape.head_size;
  const QueryTile at = QueryTileOfBlock<Tile::kRows, Tile::kColumns, kOptions>(shape, args.options);
  float* queries = DynamicShared<float>();
  float* keys = queries + Tile::kRows * Tile::kStride;
  float* values = keys + Tile::kColumns * Tile::kStride;
  float* weights = values + Tile::kColumns * Tile::kStride;
  float maximum[Tile::kI], total[Tile::kI], sums[Tile::kI][Tile::kC];
  Clear(sums);
#pragma unroll
  for (int i = 0; i < Tile::kI; ++i) {
    maximum[i] = -FLT_MAX;  // finite: a query may see no key of the first tile that others of its block see
    total[i] = 0.0f;
  }
  LoadTile<kHead, Tile::kRows>(static_cast<const float*>(args.q) + RowOffset(at.q, at.begin), at.q.stride,
                               at.present, size, packed, queries);
#pragma unroll 1
  for (int key_begin = at.key_begin; key_begin < at.key_end; key_begin += Tile::kColumns) {
    __syncthreads();  // the tiles before were read by all
    LoadTiles<kHead, Tile::kColumns>(args.k, args.v, RowOffset(at.kv, key_begin), at.kv.stride,
                                     Smaller(Tile::kColumns, (kOptions ? at.key_end : positions) - key_begin),
                                     size, packed, keys, values);
    __syncthreads();
    float scores[Tile::kI][Tile::kJ];
    RowProducts<Tile::kStride>(queries, keys, Depth(shape), scores);
    ScoreTile<kOptions>(shape, at, key_begin, scores);
    SoftmaxTile(scores, maximum, total, sums);
    if (kOptions && args.options.threshold > 0)
      DropTile(shape, args.options, at.batch_head * positions, at.begin, key_begin, scores);
    AddThrough<kHead, Tile::kColumns>(weights, scores, values, sums);
  }
#pragma unroll
  for (int i = 0; i < Tile::kI; ++i) {
    const bool unseen = kOptions && total[i] == 0.0f;  // its sums are 0 as well
    const float inverse = unseen ? 0.0f : 1.0f / total[i];
#pragma unroll
    for (int c = 0; c < Tile::kC; ++c) sums[i][c] *= inverse;
    const int row = ThreadY() + kSide * i;
    if (ThreadX() == 0 && row < at.present)
      args.lse[at.batch_head * shape.positions + at.begin + row] =
          unseen ? 0.0f : (maximum[i] + log2f(total[i])) * kLn2;
  }
  StoreRows<kHead>(sums, static_cast<float*>(args.out) + RowOffset(at.out, at.begin), at.out.stride,
                   at.present, size, packed);
}

template <int kHead>
constexpr size_t SharedBytes() {
  using Tile = AttentionTile<kHead>;
  return ((Tile::kRows + 2 * Tile::kColumns) * Tile::kStride + Tile::kWeightFloats) * sizeof(float);
}

template <int kHead>
int Forward(const AttentionArgs& args, StreamHandle stream) {
  using Tile = AttentionTile<kHead>;
  const AttentionShape& shape = args.shape;
  const bool packed = CanPackHeads<float>(shape, {args.q, args.k, args.v, args.out});
  const int blocks = Tiles(shape.positions, Tile::kRows) * shape.batch * shape.heads;
  return Launch(args.options.any() ? ForwardKernel<kHead, true> : ForwardKernel<kHead, false>,
                {.grid_x = static_cast<unsigned>(blocks),
                 .block_x = kAttentionThreads,
                 .shared_bytes = SharedBytes<kHead>()},
                stream, args, packed);
}

// A block for each sequence, and a run of positions for each thread.
constexpr int kSegmentThreads = 256;
__global__ void __launch_bounds__(kSegmentThreads)
    SegmentsKernel(const int32_t* ids, SegmentBounds* segments, int positions) {
  __shared__ int first_begins[kSegmentThreads], last_begins[kSegmentThreads];
  const int64_t offset = int64_t{blockIdx.x} * positions;
  ids += offset;
  segments += offset;
  const int thread = static_cast<int>(threadIdx.x);
  const int run = (positions + kSegmentThreads - 1) / kSegmentThreads;
  const int from = Smaller(positions, thread * run), to = Smaller(positions, from + run);
  const auto begins_at = [=](int t) { return t == 0 || ids[t] != ids[t - 1]; };
  int first = positions, last = -1;  // of the segments that begin here
  for (int t = from; t < to; ++t) {
    if (!begins_at(t)) continue;
    first = Smaller(first, t);
    last = t;
  }
  first_begins[thread] = first;
  last_begins[thread] = last;
  __syncthreads();
  int begin = 0, end = positions;
  for (int other = 0; other < kSegmentThreads; ++other) {
    if (other < thread) begin = Larger(begin, last_begins[other]);
    if (other > thread) end = Smaller(end, first_begins[other]);
  }
  for (int t = from; t < to; ++t) {
    if (begins_at(t)) begin = t;
    segments[t].begin = begin;
  }
  for (int t = to - 1; t >= from; --t) {
    segments[t].end = end;
    if (begins_at(t)) end = t;
  }
}

}  // namespace

int FindSegments(const AttentionOptions& options, int batch, int positions, StreamHandle stream) {
  if (options.ids == nullptr) return 0;
  return Launch(SegmentsKernel, {.grid_x = static_cast<unsigned>(batch), .block_x = kSegmentThreads}, stream,
                options.ids, options.segments, positions);
}

int Attention(const AttentionArgs& args, StreamHandle stream) {
  if (const int error = FindSegments(args.options, args.shape.batch, args.shape.positions, stream);
      error != 0)
    return error;
  if (args.shape.dtype != DType::kF32) return TensorAttention(args, stream);
  return WithHeadTile(args.shape.head_size, [&]<int kHead>() { return Forward<kHead>(args, stream); });
}

size_t AttentionSharedBytes(int head_size, DType dtype) {
  if (dtype != DType::kF32) return TensorAttentionSharedBytes(head_size);
  return WithHeadTile(head_size, [&]<int kHead>() { return SharedBytes<kHead>(); });
}

}  // namespace ft::cuda
