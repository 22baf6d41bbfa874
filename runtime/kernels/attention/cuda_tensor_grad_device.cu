// The gradient of attention of 16-bit elements, as cuda_grad_device.cu has it of f32: every block sums what
// it stores by itself, in one order. While a tile is multiplied the next one comes. Probabilities and
// gradients of scores are rounded to 16 bits before they multiply.
#include "runtime/kernels/attention/cuda_tensor_tile.h"

namespace ft::cuda {
namespace {

template <int kHead>
struct GradTile {
  static constexpr int kRows = kRowWarps * 16;            // stay in the block
  static constexpr int kColumns = kHead <= 64 ? 64 : 32;  // pass by
  // Of the columns of what is summed: so many warps have the same rows, and a part of the columns each.
  static constexpr int kParts = kHead <= 128 ? 1 : 2;
  static constexpr int kThreads = kRowWarps * kParts * kWarp;
  static constexpr int kN = kColumns / 8, kC = kHead / kParts / 8;
  static constexpr int kStride = kTensorStride<kHead>;
  static constexpr int kRowElements = kRows * kStride, kColumnElements = kColumns * kStride;
  // Two tiles that stay, two places for the two that pass, and for two numbers of each passing row.
  static constexpr size_t kSharedBytes =
      (2 * kRowElements + 4 * kColumnElements) * 2 + 4 * kColumns * sizeof(float);

  // The first column of this warp's part.
  __device__ static int Column() {
    return static_cast<int>(threadIdx.x) / kWarp / kRowWarps * (kHead / kParts);
  }
};

// Of a score before its scale (see Capped), of a query and a key that lies `distance` positions behind it;
// lse2 is over ln 2.
__device__ __forceinline__ float TensorProbability(const AttentionShape& shape, float capped, float scale,
                                                   float slope2, int distance, float lse2) {
  float offset = -lse2;
  if (shape.alibi_heads != 0) offset += slope2 * static_cast<float>(distance);
  return exp2f(__fmaf_rn(capped, scale, offset));
}

// dq of a tile of queries.
template <typename T, int kHead, bool kCapped, bool kOptions>
__global__ void __launch_bounds__(GradTile<kHead>::kThreads, kHead <= 128 ? 2 : 1)
    TensorQueryGradKernel(AttentionGradArgs args, bool packed) {
  using Tile = GradTile<kHead>;
  constexpr int kN = Tile::kN, kColumns = Tile::kColumns, kThreads = Tile::kThreads;
  const AttentionShape& shape = args.shape;
  const int positions = shape.positions, size = shape.head_size, depth = TensorDepth(shape);
  const QueryTile at = QueryTileOfBlock<Tile::kRows, kColumns, kOptions>(shape, args.options);
  T* queries = DynamicShared<T>();
  T* douts = queries + Tile::kRowElements;
  T* keys = douts + Tile::kRowElements;  // in two places
  T* values = keys + 2 * Tile::kColumnElements;
  const auto fetch = [&](int key_begin, int place) {
    const int present = Smaller(kColumns, (kOptions ? at.key_end : positions) - key_begin);
    FetchTile<kHead, kColumns, kThreads>(args.k, at.kv, key_begin, present, size, packed, keys + place);
    FetchTile<kHead, kColumns, kThreads>(args.v, at.kv, key_begin, present, size, packed, values + place);
  };
  float dq[1][Tile::kC][4], lse2[2], row_sum[2];
  ClearSums(dq);
  const int row = at.begin + WarpRow<1>() + LaneRow();  // this lane's first query
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int query = row + 8 * i, place = at.batch_head * positions + query;
    lse2[i] = query < positions ? args.lse[place] * kLog2E : 0.0f;
    row_sum[i] = query < positions ? args.row_sums[place] : 0.0f;
  }
  const int64_t offset = RowOffset(at.q, at.begin);
  FetchTile<kHead, Tile::kRows, kThreads>(args.q, at.q, at.begin, at.present, size, packed, queries);
  FetchTile<kHead, Tile::kRows, kThreads>(args.dout, at.out, at.begin, at.present, size, packed, douts);
  int place = 0;  // of the keys and values that are multiplied
  if (at.key_begin < at.key_end) fetch(at.key_begin, place);
#pragma unroll 1
  for (int key_begin = at.key_begin; key_begin < at.key_end; key_begin += kColumns) {
    FinishCopies();
    __syncthreads();  // this tile is here, the one before was read by all
    if (key_begin + kColumns < at.key_end) fetch(key_begin + kColumns, Tile::kColumnElements - place);
    float scores[1][kN][4], gradients[1][kN][4];
    TensorRowProducts<kHead>(queries, keys + place, depth, scores);
    TensorRowProducts<kHead>(douts, values + place, depth, gradients);
    const bool whole = SeesAll<kOptions>(shape, at.begin + WarpRow<1>(), 16, key_begin, kColumns);
    const uint32_t kept =
        KeptOfTile<kOptions, 4 * kN>(shape, args.options, at.batch_head * positions, [=](int n) {
          return QueryAndKey{row + n / 2 % 2 * 8, key_begin + 8 * (n / 4) + LaneColumn() + n % 2};
        });
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int query = row + 8 * i;
      const KeyRange seen = KeysSeen<kOptions>(shape, at.sequence, query);
#pragma unroll
      for (int n = 0; n < kN; ++n) {
#pragma unroll
        for (int e = 2 * i; e < 2 * i + 2; ++e) {
          const int key = key_begin + 8 * n + LaneColumn() + e % 2;
          const float capped = kCapped ? Capped(shape, scores[0][n][e]) : scores[0][n][e];
          const float p =
              TensorProbability(shape, capped, Outer(shape) * kLog2E, at.slope2, key - query, lse2[i]);
          float dp = gradients[0][n][e];
          if (kOptions) dp = (kept >> (4 * n + e) & 1u) == 0 ? 0.0f : dp * args.options.factor;
          float gradient = p * (dp - row_sum[i]) * shape.scale;
          if (kCapped) gradient *= 1.0f - capped * capped;
          gradients[0][n][e] = whole || Visible<kOptions>(shape, seen, query, key) ? gradient : 0.0f;
        }
      }
    }
    AddWeighted<kHead>(gradients, keys + place + Tile::Column(), dq);
    place = Tile::kColumnElements - place;
  }
  FinishCopies();  // none may write to a block that is gone
  StoreSums(dq, static_cast<T*>(args.dq) + offset, at.q.stride, at.present, Tile::Column(), size, packed);
}

// dk and dv of a tile of keys: all queries that see one of them, one head after the other.
template <typename T, int kHead, bool kCapped, bool kOptions>
__global__ void __launch_bounds__(GradTile<kHead>::kThreads, kHead <= 128 ? 2 : 1)
    TensorKeyGradKernel(AttentionGradArgs args, bool packed) {
  using Tile = GradTile<kHead>;
  constexpr int kN = Tile::kN, kColumns = Tile::kColumns, kThreads = Tile::kThreads;
  const AttentionShape& shape = args.shape;
  const int positions = shape.positions, size = shape.head_size, depth = TensorDepth(shape);
  const KeyTile at = KeyTileOfBlock<Tile::kRows, kColumns, kOptions>(shape, args.options);
  const int group = shape.heads / shape.kv_heads;
  const int tiles =
      at.query_end <= at.query_begin ? 0 : (at.query_end - at.query_begin + kColumns - 1) / kColumns;
  T* keys = DynamicShared<T>();
  T* values = keys + Tile::kRowElements;
  T* queries = values + Tile::kRowElements;  // in two places
  T* douts = queries + 2 * Tile::kColumnElements;
  float* lse2 = reinterpret_cast<float*>(douts + 2 * Tile::kColumnElements);  // of queries, in two places
  float* row_sums = lse2 + 2 * kColumns;
  // Of the tiles of all heads, one behind the other.
  const auto head_of = [&](int tile) { return at.kv_head * group + tile / tiles; };
  const auto query_of = [&](int tile) { return at.query_begin + tile % tiles * kColumns; };
  const auto fetch = [&](int tile) {
    const int head = head_of(tile), query = query_of(tile), place = tile % 2;
    const HeadRows q = RowsOfHead(shape, at.batch, head, shape.q_stride);
    const HeadRows out = RowsOfHead(shape, at.batch, head, shape.heads * size);
    const int present = Smaller(kColumns, positions - query);
    FetchTile<kHead, kColumns, kThreads>(args.q, q, query, present, size, packed,
                                         queries + place * Tile::kColumnElements);
    FetchTile<kHead, kColumns, kThreads>(args.dout, out, query, present, size, packed,
                                         douts + place * Tile::kColumnElements);
    const int i = static_cast<int>(threadIdx.x),
              row = (at.batch * shape.heads + head) * positions + query + i;
    if (i < kColumns) {
      lse2[place * kColumns + i] = i < present ? args.lse[row] * kLog2E : 0.0f;
      row_sums[place * kColumns + i] = i < present ? args.row_sums[row] : 0.0f;
    }
  };
  float dk[1][Tile::kC][4], dv[1][Tile::kC][4];
  ClearSums(dk);
  ClearSums(dv);
  const int64_t offset = RowOffset(at.kv, at.begin);
  FetchTile<kHead, Tile::kRows, kThreads>(args.k, at.kv, at.begin, at.present, size, packed, keys);
  FetchTile<kHead, Tile::kRows, kThreads>(args.v, at.kv, at.begin, at.present, size, packed, values);
  if (tiles > 0) fetch(0);
  const int row = at.begin + WarpRow<1>() + LaneRow();  // this lane's first key
#pragma unroll 1
  for (int tile = 0; tile < group * tiles; ++tile) {
    FinishCopies();
    __syncthreads();  // this tile is here, the one before was read by all
    if (tile + 1 < group * tiles) fetch(tile + 1);
    const int head = head_of(tile), query_begin = query_of(tile);
    const T* q = queries + tile % 2 * Tile::kColumnElements;
    const T* dout = douts + tile % 2 * Tile::kColumnElements;
    const float slope2 = Slope(shape, head) * kLog2E;
    float p[1][kN][4], gradients[1][kN][4];  // [keys, queries]
    TensorRowProducts<kHead>(keys, q, depth, p);
    const uint32_t kept = KeptOfTile<kOptions, 4 * kN>(
        shape, args.options, (at.batch * shape.heads + head) * positions, [=](int n) {
          return QueryAndKey{query_begin + 8 * (n / 4) + LaneColumn() + n % 2, row + n / 2 % 2 * 8};
        });
    float slopes[kCapped ? kN : 1][4];  // of capped scores
    const bool whole = SeesAll<kOptions>(shape, query_begin, kColumns, at.begin + WarpRow<1>(), 16);
#pragma unroll
    for (int n = 0; n < kN; ++n) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const int column = 8 * n + LaneColumn() + j, query = query_begin + column;
        const float own_lse2 = lse2[tile % 2 * kColumns + column];
        const KeyRange seen = KeysSeen<kOptions>(shape, at.sequence, query);
#pragma unroll
        for (int e = j; e < 4; e += 2) {
          const int key = row + e / 2 * 8;
          const float capped = kCapped ? Capped(shape, p[0][n][e]) : p[0][n][e];
          if constexpr (kCapped) slopes[n][e] = 1.0f - capped * capped;
          const float probability =
              TensorProbability(shape, capped, Outer(shape) * kLog2E, slope2, key - query, own_lse2);
          p[0][n][e] = whole || Visible<kOptions>(shape, seen, query, key) ? probability : 0.0f;
          // Those that dropout drops are negative from here on.
          if (kOptions && (kept >> (4 * n + e) & 1u) == 0) p[0][n][e] = -p[0][n][e];
        }
      }
    }
    AddWeighted<kHead, kOptions>(p, dout + Tile::Column(), dv);
    TensorRowProducts<kHead>(values, dout, depth, gradients);
#pragma unroll
    for (int n = 0; n < kN; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float row_sum = row_sums[tile % 2 * kColumns + 8 * n + LaneColumn() + e % 2];
        float dp = gradients[0][n][e];
        if (kOptions) dp = (kept >> (4 * n + e) & 1u) == 0 ? 0.0f : dp * args.options.factor;
        const float probability = kOptions ? fabsf(p[0][n][e]) : p[0][n][e];
        float gradient = probability * (dp - row_sum) * shape.scale;
        if constexpr (kCapped) gradient *= slopes[n][e];
        gradients[0][n][e] = probability == 0.0f ? 0.0f : gradient;  // whatever dout of an unseen query is
      }
    }
    AddWeighted<kHead>(gradients, q + Tile::Column(), dk);
  }
  FinishCopies();  // none may write to a block that is gone
  if (kOptions) ScaleSums(args.options.factor, dv);
  StoreSums(dk, static_cast<T*>(args.dk) + offset, at.kv.stride, at.present, Tile::Column(), size, packed);
  StoreSums(dv, static_cast<T*>(args.dv) + offset, at.kv.stride, at.present, Tile::Column(), size, packed);
}

template <typename T, int kHead, bool kCapped, bool kOptions>
int TensorBackward(const AttentionGradArgs& args, StreamHandle stream) {
  using Tile = GradTile<kHead>;
  const AttentionShape& shape = args.shape;
  const bool packed = CanPackHeads<T>(shape, {args.q, args.k, args.v, args.dout, args.dq, args.dk, args.dv});
  const int tiles = Tiles(shape.positions, Tile::kRows) * shape.batch;
  LaunchShape launch = {.grid_x = static_cast<unsigned>(tiles * shape.heads),
                        .block_x = Tile::kThreads,
                        .shared_bytes = Tile::kSharedBytes};
  const int error = Launch(TensorQueryGradKernel<T, kHead, kCapped, kOptions>, launch, stream, args, packed);
  if (error != 0) return error;
  launch.grid_x = static_cast<unsigned>(tiles * shape.kv_heads);
  return Launch(TensorKeyGradKernel<T, kHead, kCapped, kOptions>, launch, stream, args, packed);
}

}  // namespace

int TensorAttentionGrad(const AttentionGradArgs& args, StreamHandle stream) {
  const bool capped = args.shape.softcap > 0.0f, options = args.options.any();
  return With16BitType(args.shape.dtype, [&]<typename T>() {
    return WithHeadTile(args.shape.head_size, [&]<int kHead>() {
      if (options)
        return capped ? TensorBackward<T, kHead, true, true>(args, stream)
                      : TensorBackward<T, kHead, false, true>(args, stream);
      return capped ? TensorBackward<T, kHead, true, false>(args, stream)
                    : TensorBackward<T, kHead, false, false>(args, stream);
    });
  });
}

size_t TensorAttentionGradSharedBytes(int head_size) {
  return WithHeadTile(head_size, [&]<int kHead>() { return GradTile<kHead>::kSharedBytes; });
}

}  // namespace ft::cuda
