// After T. Dao et al., "FlashAttention", 2022: softmax by tiles of keys with a running maximum, probabilities
// computed again from the log of the sum of exponentials in the gradient.
#include "runtime/backends/cpu/routines/attention.h"

#include <math.h>

#include "runtime/backends/cpu/routines/tile_product.h"
#include "runtime/backends/cpu/routines/transpose.h"
#include "runtime/backends/cpu/routines/vector_math.h"

namespace ft::cpu::FT_ISA {
namespace {

constexpr int64_t kMaxTile = 64;
constexpr float kMinusInfinity = -__builtin_inff();

FT_INLINE int64_t Smaller(int64_t a, int64_t b) { return a < b ? a : b; }
FT_INLINE int64_t RoundUp(int64_t n) { return (n + kLanes - 1) / kLanes * kLanes; }

// Hands out pieces of one buffer on the stack, each a multiple of 64 bytes.
struct Scratch {
  float* next;
  inline __attribute__((always_inline)) float* Take(int64_t n) {
    float* piece = next;
    next += (n + 15) / 16 * 16;
    return piece;
  }
};

// to [rows, width] = from [rows, n] with row stride ld, the rest of each row zero.
FT_INLINE void PackRows(const float* from, int64_t ld, int64_t rows, int64_t n, float* to, int64_t width) {
  for (int64_t i = 0; i < rows; ++i) {
#pragma omp simd
    for (int64_t s = 0; s < n; ++s) to[i * width + s] = from[i * ld + s];
    for (int64_t s = n; s < width; ++s) to[i * width + s] = 0.0f;
  }
}

// to [n, width] = the transpose of from [rows, n], the rest of each row zero; width is a multiple of 16.
FT_INLINE void PackTransposed(const float* from, int64_t ld, int64_t rows, int64_t n, float* to,
                              int64_t width) {
#if defined(__AVX512F__)
  for (int64_t s = 0; s < n; s += 16) {
    for (int64_t i = 0; i < width; i += 16) {
      TransposeBlock(from + i * ld + s, ld, rows - i, to + s * width + i, width, Smaller(16, n - s));
    }
  }
#else
  for (int64_t s = 0; s < n; ++s) {
    for (int64_t i = 0; i < rows; ++i) to[s * width + i] = from[i * ld + s];
    for (int64_t i = rows; i < width; ++i) to[s * width + i] = 0.0f;
  }
#endif
}

// Keys of the tile that query `query` sees.
FT_INLINE int64_t VisibleKeys(const AttentionArgs& args, int64_t query, int64_t key_begin, int64_t keys) {
  return args.causal ? Smaller(keys, query - key_begin + 1) : keys;
}

// One row of scores becomes probabilities relative to the running maximum; earlier sums are rescaled to it.
FT_INLINE void SoftmaxRow(float* scores, int64_t visible, int64_t width, float scale, float& maximum,
                          float& sum, float* out, int64_t out_width) {
  float tile_maximum = kMinusInfinity;
#pragma omp simd reduction(max : tile_maximum)
  for (int64_t j = 0; j < visible; ++j) tile_maximum = scores[j] > tile_maximum ? scores[j] : tile_maximum;
  const float scaled = tile_maximum * scale;
  const float new_maximum = scaled > maximum ? scaled : maximum;
  const float correction = Exp(maximum - new_maximum);
  float tile_sum = 0.0f;
#pragma omp simd reduction(+ : tile_sum)
  for (int64_t j = 0; j < visible; ++j) {
    const float p = SoftmaxExp(Fma(scores[j], scale, -new_maximum));
    scores[j] = p;
    tile_sum += p;
  }
  for (int64_t j = visible < 0 ? 0 : visible; j < width; ++j) scores[j] = 0.0f;
  if (correction != 1.0f) {
#pragma omp simd
    for (int64_t s = 0; s < out_width; ++s) out[s] *= correction;
  }
  sum = sum * correction + tile_sum;
  maximum = new_maximum;
}

void Forward(const AttentionArgs& args, int64_t batch, int64_t head, int64_t query_tile) {
  const int64_t n = args.head_size, tile = AttentionTile(n), width = RoundUp(n);
  const int64_t ldq = args.heads * n, ldk = args.kv_heads * n;
  const int64_t kv_offset = batch * args.positions * ldk + head / (args.heads / args.kv_heads) * n;
  const int64_t query_begin = query_tile * tile, queries = Smaller(tile, args.positions - query_begin);
  alignas(64) float buffer[3 * kMaxTile * kMaxTile + kMaxTile * kMaxTile];
  Scratch scratch{buffer};
  float* keys_transposed = scratch.Take(n * tile);
  float* values = scratch.Take(tile * width);
  float* sums = scratch.Take(tile * width);
  float* scores = scratch.Take(tile * tile);
  float maxima[kMaxTile], totals[kMaxTile];
  for (int64_t i = 0; i < queries; ++i) {
    maxima[i] = kMinusInfinity;
    totals[i] = 0.0f;
  }
  for (int64_t i = 0; i < queries * width; ++i) sums[i] = 0.0f;
  const int64_t q_offset = (batch * args.positions + query_begin) * ldq + head * n;
  const int64_t key_end = args.causal ? query_begin + queries : args.positions;
  for (int64_t key_begin = 0; key_begin < key_end; key_begin += tile) {
    const int64_t keys = Smaller(tile, args.positions - key_begin);
    PackTransposed(args.k + kv_offset + key_begin * ldk, ldk, keys, n, keys_transposed, tile);
    PackRows(args.v + kv_offset + key_begin * ldk, ldk, keys, n, values, width);
    TileProduct(queries, tile, n, {args.q + q_offset, ldq, 1}, keys_transposed, tile, scores, tile, false);
    for (int64_t i = 0; i < queries; ++i) {
      const int64_t visible = VisibleKeys(args, query_begin + i, key_begin, keys);
      SoftmaxRow(scores + i * tile, visible, tile, args.scale, maxima[i], totals[i], sums + i * width, width);
    }
    TileProduct(queries, width, keys, {scores, tile, 1}, values, width, sums, width, true);
  }
  for (int64_t i = 0; i < queries; ++i) {
    const float inverse = 1.0f / totals[i];
    float* out = args.out + q_offset + i * ldq;
#pragma omp simd
    for (int64_t s = 0; s < n; ++s) out[s] = sums[i * width + s] * inverse;
    args.lse[(batch * args.heads + head) * args.positions + query_begin + i] = maxima[i] + logf(totals[i]);
  }
}

void RowSums(const AttentionGradArgs& args, int64_t batch, int64_t head) {
  const AttentionArgs& f = args.forward;
  const int64_t ldq = f.heads * f.head_size;
  for (int64_t t = 0; t < f.positions; ++t) {
    const int64_t at = (batch * f.positions + t) * ldq + head * f.head_size;
    float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (int64_t s = 0; s < f.head_size; ++s) sum += args.dout[at + s] * f.out[at + s];
    args.row_sums[(batch * f.heads + head) * f.positions + t] = sum;
  }
}

// What a tile of keys holds while the queries pass by.
struct KeyTile {
  int64_t begin, keys;
  float* keys_transposed;    // [head_size, tile]
  float* values_transposed;  // [head_size, tile]
  float* rows;               // [tile, width]
  float* dk;                 // [tile, width]
  float* dv;                 // [tile, width]
};

struct QueryScratch {
  float* queries;        // [tile, width]
  float* dout;           // [tile, width]
  float* dq;             // [tile, width]
  float* probabilities;  // [tile, tile]
  float* dscores;        // [tile, tile]
};

// Probabilities from scores and lse, then dscores = p * (dp - row sum) * scale.
FT_INLINE void ScoreGradRow(float* scores, float* dscores, int64_t visible, int64_t width, float scale,
                            float lse, float row_sum) {
#pragma omp simd
  for (int64_t j = 0; j < visible; ++j) {
    const float p = SoftmaxExp(Fma(scores[j], scale, -lse));
    scores[j] = p;
    dscores[j] = p * (dscores[j] - row_sum) * scale;
  }
  for (int64_t j = visible < 0 ? 0 : visible; j < width; ++j) scores[j] = dscores[j] = 0.0f;
}

FT_INLINE void BackwardTile(const AttentionGradArgs& args, const KeyTile& key, const QueryScratch& query,
                            int64_t batch, int64_t head, int64_t query_begin) {
  const AttentionArgs& f = args.forward;
  const int64_t n = f.head_size, tile = AttentionTile(n), width = RoundUp(n), ldq = f.heads * n;
  const int64_t queries = Smaller(tile, f.positions - query_begin);
  const int64_t offset = (batch * f.positions + query_begin) * ldq + head * n;
  PackRows(f.q + offset, ldq, queries, n, query.queries, width);
  PackRows(args.dout + offset, ldq, queries, n, query.dout, width);
  TileProduct(queries, tile, n, {query.queries, width, 1}, key.keys_transposed, tile, query.probabilities,
              tile, false);
  TileProduct(queries, tile, n, {query.dout, width, 1}, key.values_transposed, tile, query.dscores, tile,
              false);
  const int64_t row = (batch * f.heads + head) * f.positions + query_begin;
  for (int64_t i = 0; i < queries; ++i) {
    const int64_t visible = VisibleKeys(f, query_begin + i, key.begin, key.keys);
    ScoreGradRow(query.probabilities + i * tile, query.dscores + i * tile, visible, tile, f.scale,
                 f.lse[row + i], args.row_sums[row + i]);
  }
  TileProduct(key.keys, width, queries, {query.probabilities, 1, tile}, query.dout, width, key.dv, width,
              true);
  TileProduct(key.keys, width, queries, {query.dscores, 1, tile}, query.queries, width, key.dk, width, true);
  TileProduct(queries, width, key.keys, {query.dscores, tile, 1}, key.rows, width, query.dq, width, false);
  for (int64_t i = 0; i < queries; ++i) {
    float* dq = args.dq + offset + i * ldq;
    const float* part = query.dq + i * width;
    // Every query sees the first tile of keys, which sets dq; the others add to it. The check takes = and +=
    // below an OpenMP pragma for the same. NOLINTNEXTLINE(bugprone-branch-clone)
    if (key.begin == 0) {
#pragma omp simd
      for (int64_t s = 0; s < n; ++s) dq[s] = part[s];
    } else {
#pragma omp simd
      for (int64_t s = 0; s < n; ++s) dq[s] += part[s];
    }
  }
}

void Backward(const AttentionGradArgs& args, int64_t batch, int64_t kv_head) {
  const AttentionArgs& f = args.forward;
  const int64_t n = f.head_size, tile = AttentionTile(n), width = RoundUp(n);
  const int64_t ldk = f.kv_heads * n, group = f.heads / f.kv_heads;
  alignas(64) float buffer[8 * kMaxTile * kMaxTile + 2 * kMaxTile * kMaxTile];
  Scratch scratch{buffer};
  KeyTile key = {0,
                 0,
                 scratch.Take(n * tile),
                 scratch.Take(n * tile),
                 scratch.Take(tile * width),
                 scratch.Take(tile * width),
                 scratch.Take(tile * width)};
  const QueryScratch query = {scratch.Take(tile * width), scratch.Take(tile * width),
                              scratch.Take(tile * width), scratch.Take(tile * tile),
                              scratch.Take(tile * tile)};
  const int64_t offset = batch * f.positions * ldk + kv_head * n;
  for (key.begin = 0; key.begin < f.positions; key.begin += tile) {
    key.keys = Smaller(tile, f.positions - key.begin);
    const int64_t at = offset + key.begin * ldk;
    PackTransposed(f.k + at, ldk, key.keys, n, key.keys_transposed, tile);
    PackTransposed(f.v + at, ldk, key.keys, n, key.values_transposed, tile);
    PackRows(f.k + at, ldk, key.keys, n, key.rows, width);
    for (int64_t i = 0; i < tile * width; ++i) key.dk[i] = key.dv[i] = 0.0f;
    for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      for (int64_t q = f.causal ? key.begin : 0; q < f.positions; q += tile)
        BackwardTile(args, key, query, batch, head, q);
    }
    for (int64_t i = 0; i < key.keys; ++i) {
#pragma omp simd
      for (int64_t s = 0; s < n; ++s) {
        args.dk[at + i * ldk + s] = key.dk[i * width + s];
        args.dv[at + i * ldk + s] = key.dv[i * width + s];
      }
    }
  }
}

}  // namespace

extern const AttentionRoutines kAttention;
const AttentionRoutines kAttention = {Forward, RowSums, Backward};

}  // namespace ft::cpu::FT_ISA
