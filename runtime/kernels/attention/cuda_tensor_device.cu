// Attention of 16-bit elements. After T. Dao, "FlashAttention-2", 2023: a warp keeps the rows of its queries,
// and what it has summed, in registers. While keys are multiplied values come, and the other way round.
// Probabilities are rounded to 16 bits before they multiply values. Exponents are kept to base 2.
#include <cfloat>

#include "runtime/kernels/attention/cuda_tensor_tile.h"

namespace ft::cuda {
namespace {

constexpr int kForwardThreads = kRowWarps * kWarp;

template <int kHead>
struct ForwardTile {
  static constexpr int kM = kHead <= 64 ? 2 : 1;
  static constexpr int kRows = kRowWarps * 16 * kM;        // queries
  static constexpr int kColumns = kHead <= 128 ? 64 : 32;  // keys
  static constexpr int kN = kColumns / 8, kC = kHead / 8;
  static constexpr size_t kSharedBytes = (kRows + 2 * kColumns) * kTensorStride<kHead> * 2;
};

// Products become scores over ln 2; those that are not seen become minus infinity. `query` is this warp's
// first.
template <bool kOptions, int kM, int kN>
__device__ __forceinline__ void TensorScores(const AttentionShape& shape, const QueryTile& at, int query,
                                             int key_begin, float (&scores)[kM][kN][4]) {
  if (shape.softcap > 0.0f) {
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int n = 0; n < kN; ++n) {
#pragma unroll
        for (int e = 0; e < 4; ++e) scores[m][n][e] = Capped(shape, scores[m][n][e]);
      }
    }
  }
  ScaleSums(Outer(shape) * kLog2E, scores);
  const bool whole = SeesAll<kOptions>(shape, query, 16 * kM, key_begin, 8 * kN);
  if (whole && shape.alibi_heads == 0) return;
#pragma unroll
  for (int i = 0; i < 2 * kM; ++i) {
    // Rows behind the last position are computed with the others, and not stored: they see what that one
    // sees.
    const int row = Smaller(query + LaneRow() + 8 * i, shape.positions - 1);
    const KeyRange seen = KeysSeen<kOptions>(shape, at.sequence, row);
#pragma unroll
    for (int n = 0; n < kN; ++n) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int key = key_begin + 8 * n + LaneColumn() + e;
        float& score = scores[i / 2][n][i % 2 * 2 + e];
        score += at.slope2 * static_cast<float>(key - row);
        if (!whole && !Visible<kOptions>(shape, seen, row, key)) score = -INFINITY;
      }
    }
  }
}

// Scores become probabilities relative to the running maximum of their row; earlier sums are rescaled to it.
// `total` is this lane's part.
template <int kM, int kN, int kC>
__device__ __forceinline__ void TensorSoftmax(float (&scores)[kM][kN][4], float (&maximum)[2 * kM],
                                              float (&total)[2 * kM], float (&sums)[kM][kC][4]) {
#pragma unroll
  for (int i = 0; i < 2 * kM; ++i) {
    const int m = i / 2, first = i % 2 * 2;
    float highest = maximum[i];
#pragma unroll
    for (int n = 0; n < kN; ++n)
      highest = Max()(Max()(highest, scores[m][n][first]), scores[m][n][first + 1]);
    highest = QuadReduce<Max>(highest);
    float sum = 0.0f;
#pragma unroll
    for (int n = 0; n < kN; ++n) {
#pragma unroll
      for (int e = first; e < first + 2; ++e) {
        scores[m][n][e] = exp2f(scores[m][n][e] - highest);
        sum += scores[m][n][e];
      }
    }
    const float correction = exp2f(maximum[i] - highest);
    total[i] = __fmaf_rn(total[i], correction, sum);
    maximum[i] = highest;
#pragma unroll
    for (int c = 0; c < kC; ++c) {
      sums[m][c][first] *= correction;
      sums[m][c][first + 1] *= correction;
    }
  }
}

// Those that dropout drops become 0. `row` is that of the head's first query, `query` this warp's first.
template <int kM, int kN>
__device__ __forceinline__ void DropProbabilities(const AttentionShape& shape,
                                                  const AttentionOptions& options, int row, int query,
                                                  int key_begin, float (&values)[kM][kN][4]) {
#pragma unroll
  for (int m = 0; m < kM; ++m) {
    const uint32_t kept = KeptOfTile<true, 4 * kN>(shape, options, row, [=](int n) {
      return QueryAndKey{query + 16 * m + LaneRow() + n / 2 % 2 * 8,
                         key_begin + 8 * (n / 4) + LaneColumn() + n % 2};
    });
#pragma unroll
    for (int n = 0; n < 4 * kN; ++n) {
      if ((kept >> n & 1u) == 0) values[m][n / 4][n % 4] = 0.0f;
    }
  }
}

// One block for a tile of queries of a head.
template <typename T, int kHead, bool kOptions>
__global__ void __launch_bounds__(kForwardThreads, 2) TensorForwardKernel(AttentionArgs args, bool packed) {
  using Tile = ForwardTile<kHead>;
  constexpr int kM = Tile::kM, kColumns = Tile::kColumns, kStride = kTensorStride<kHead>;
  const AttentionShape& shape = args.shape;
  const int positions = shape.positions, size = shape.head_size, depth = TensorDepth(shape);
  const QueryTile at = QueryTileOfBlock<Tile::kRows, kColumns, kOptions>(shape, args.options);
  T* queries = DynamicShared<T>();
  T* keys = queries + Tile::kRows * kStride;
  T* values = keys + kColumns * kStride;
  const auto fetch = [&](const void* from, int key_begin, T* to) {
    FetchTile<kHead, kColumns, kForwardThreads>(
        from, at.kv, key_begin, Smaller(kColumns, (kOptions ? at.key_end : positions) - key_begin), size,
        packed, to);
  };
  const int query = at.begin + WarpRow<kM>();  // this warp's first
  float maximum[2 * kM], total[2 * kM], sums[kM][Tile::kC][4];
  ClearSums(sums);
#pragma unroll
  for (int i = 0; i < 2 * kM; ++i) {
    maximum[i] = -FLT_MAX;  // finite: a query may see no key of the first tile that others of its block see
    total[i] = 0.0f;
  }
  FetchTile<kHead, Tile::kRows, kForwardThreads>(args.q, at.q, at.begin, at.present, size, packed, queries);
  if (at.key_begin < at.key_end) fetch(args.k, at.key_begin, keys);
#pragma unroll 1
  for (int key_begin = at.key_begin; key_begin < at.key_end; key_begin += kColumns) {
    FinishCopies();
    __syncthreads();  // keys are here, values were read by all
    fetch(args.v, key_begin, values);
    float scores[kM][Tile::kN][4];
    TensorRowProducts<kHead>(queries, keys, depth, scores);
    TensorScores<kOptions>(shape, at, query, key_begin, scores);
    TensorSoftmax(scores, maximum, total, sums);
    if (kOptions && args.options.threshold > 0)
      DropProbabilities(shape, args.options, at.batch_head * positions, query, key_begin, scores);
    FinishCopies();
    __syncthreads();  // values are here, keys were read by all
    if (key_begin + kColumns < at.key_end) fetch(args.k, key_begin + kColumns, keys);
    AddWeighted<kHead>(scores, values, sums);
  }
  FinishCopies();  // none may write to a block that is gone
  const float factor = kOptions ? args.options.factor : 1.0f;
#pragma unroll
  for (int i = 0; i < 2 * kM; ++i) {
    const float sum = QuadReduce<Sum>(total[i]);
    const bool unseen = kOptions && sum == 0.0f;  // its sums are 0 as well
    const float inverse = unseen ? 0.0f : factor / sum;
#pragma unroll
    for (int c = 0; c < Tile::kC; ++c) {
      sums[i / 2][c][i % 2 * 2] *= inverse;
      sums[i / 2][c][i % 2 * 2 + 1] *= inverse;
    }
    const int row = query + LaneRow() + 8 * i;
    if (LaneColumn() == 0 && row < positions)
      args.lse[at.batch_head * positions + row] = unseen ? 0.0f : (maximum[i] + log2f(sum)) * kLn2;
  }
  StoreSums(sums, static_cast<T*>(args.out) + RowOffset(at.out, at.begin), at.out.stride, at.present, 0, size,
            packed);
}

template <typename T, int kHead>
int TensorForward(const AttentionArgs& args, StreamHandle stream) {
  using Tile = ForwardTile<kHead>;
  const AttentionShape& shape = args.shape;
  const bool packed = CanPackHeads<T>(shape, {args.q, args.k, args.v, args.out});
  const int blocks = Tiles(shape.positions, Tile::kRows) * shape.batch * shape.heads;
  return Launch(
      args.options.any() ? TensorForwardKernel<T, kHead, true> : TensorForwardKernel<T, kHead, false>,
      {.grid_x = static_cast<unsigned>(blocks),
       .block_x = kForwardThreads,
       .shared_bytes = Tile::kSharedBytes},
      stream, args, packed);
}

}  // namespace

int TensorAttention(const AttentionArgs& args, StreamHandle stream) {
  return With16BitType(args.shape.dtype, [&]<typename T>() {
    return WithHeadTile(args.shape.head_size,
                        [&]<int kHead>() { return TensorForward<T, kHead>(args, stream); });
  });
}

size_t TensorAttentionSharedBytes(int head_size) {
  return WithHeadTile(head_size, [&]<int kHead>() { return ForwardTile<kHead>::kSharedBytes; });
}

}  // namespace ft::cuda
