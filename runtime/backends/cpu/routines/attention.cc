// After T. Dao et al., "FlashAttention", 2022: softmax by tiles of keys with a running maximum, probabilities
// computed again from the log of the sum of exponentials in the gradient.
#include "runtime/backends/cpu/routines/attention.h"

#include <math.h>

#include "runtime/backends/cpu/routines/half.h"
#include "runtime/backends/cpu/routines/tile_product.h"
#include "runtime/backends/cpu/routines/transpose.h"

namespace ft::cpu::FT_ISA {
namespace {

constexpr int64_t kMaxTile = 64;
constexpr float kMinusInfinity = -__builtin_inff();

// f32 is used where it lies; 16 bits are converted tile by tile.
template <typename T>
constexpr bool kInPlace = sizeof(T) == sizeof(float);

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
template <typename T>
FT_INLINE void PackRows(const T* from, int64_t ld, int64_t rows, int64_t n, float* to, int64_t width) {
  for (int64_t i = 0; i < rows; ++i) {
    LoadFloats(from + i * ld, n, to + i * width);
    for (int64_t s = n; s < width; ++s) to[i * width + s] = 0.0f;
  }
}

// to [n, width] = the transpose of from [rows, n], the rest of each row zero; width is a multiple of 16.
template <typename T>
FT_INLINE void PackTransposed(const T* from, int64_t ld, int64_t rows, int64_t n, float* to, int64_t width) {
#if defined(__AVX512F__)
  for (int64_t s = 0; s < n; s += 16) {
    for (int64_t i = 0; i < width; i += 16) {
      TransposeBlock(from + i * ld + s, ld, rows - i, to + s * width + i, width, Smaller(16, n - s));
    }
  }
#else
  for (int64_t s = 0; s < n; ++s) {
    for (int64_t i = 0; i < rows; ++i) to[s * width + i] = Load(from[i * ld + s]);
    for (int64_t i = rows; i < width; ++i) to[s * width + i] = 0.0f;
  }
#endif
}

// Where a head's rows of a position begin: in q, in k and v, and in out and its gradient.
FT_INLINE int64_t QueryOffset(const AttentionArgs& f, int64_t batch, int64_t position, int64_t head) {
  return (batch * f.positions + position) * f.q_stride + head * f.head_size;
}
FT_INLINE int64_t KeyOffset(const AttentionArgs& f, int64_t batch, int64_t position, int64_t kv_head) {
  return (batch * f.positions + position) * f.kv_stride + kv_head * f.head_size;
}
FT_INLINE int64_t OutOffset(const AttentionArgs& f, int64_t batch, int64_t position, int64_t head) {
  return ((batch * f.positions + position) * f.heads + head) * f.head_size;
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

template <typename T>
void Forward(const AttentionArgs& args, int64_t batch, int64_t head, int64_t query_tile) {
  const int64_t n = args.head_size, tile = AttentionTile(n), width = RoundUp(n);
  const int64_t ldq = args.q_stride, ldk = args.kv_stride;
  const int64_t kv_head = head / (args.heads / args.kv_heads);
  const int64_t query_begin = query_tile * tile, queries = Smaller(tile, args.positions - query_begin);
  alignas(64) float buffer[(kInPlace<T> ? 4 : 5) * kMaxTile * kMaxTile];
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
  const int64_t q_offset = QueryOffset(args, batch, query_begin, head);
  StridedTile q = {nullptr, ldq, 1};
  if constexpr (kInPlace<T>) {
    q.data = static_cast<const T*>(args.q) + q_offset;
  } else {
    float* rows = scratch.Take(tile * width);
    PackRows(static_cast<const T*>(args.q) + q_offset, ldq, queries, n, rows, width);
    q = {rows, width, 1};
  }
  const int64_t key_end = args.causal ? query_begin + queries : args.positions;
  for (int64_t key_begin = 0; key_begin < key_end; key_begin += tile) {
    const int64_t keys = Smaller(tile, args.positions - key_begin);
    const int64_t at = KeyOffset(args, batch, key_begin, kv_head);
    PackTransposed(static_cast<const T*>(args.k) + at, ldk, keys, n, keys_transposed, tile);
    PackRows(static_cast<const T*>(args.v) + at, ldk, keys, n, values, width);
    TileProduct(queries, tile, n, q, keys_transposed, tile, scores, tile, false);
    for (int64_t i = 0; i < queries; ++i) {
      const int64_t visible = VisibleKeys(args, query_begin + i, key_begin, keys);
      SoftmaxRow(scores + i * tile, visible, tile, args.scale, maxima[i], totals[i], sums + i * width, width);
    }
    TileProduct(queries, width, keys, {scores, tile, 1}, values, width, sums, width, true);
  }
  for (int64_t i = 0; i < queries; ++i) {
    const float inverse = 1.0f / totals[i];
    T* out = static_cast<T*>(args.out) + OutOffset(args, batch, query_begin + i, head);
#pragma omp simd
    for (int64_t s = 0; s < n; ++s) Store(sums[i * width + s] * inverse, out[s]);
    args.lse[(batch * args.heads + head) * args.positions + query_begin + i] = maxima[i] + logf(totals[i]);
  }
}

// In order: the bits that f32 has always had.
FT_INLINE float Dot(const float* a, const float* b, int64_t n) {
  float sum = 0.0f;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

template <typename T>
FT_INLINE float Dot(const T* a, const T* b, int64_t n) {
  float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += Load(a[i]) * Load(b[i]);
  return sum;
}

template <typename T>
void RowSums(const AttentionGradArgs& args, int64_t batch, int64_t head) {
  const AttentionArgs& f = args.forward;
  const T* dout = static_cast<const T*>(args.dout);
  const T* out = static_cast<const T*>(f.out);
  for (int64_t t = 0; t < f.positions; ++t) {
    const int64_t at = OutOffset(f, batch, t, head);
    args.row_sums[(batch * f.heads + head) * f.positions + t] = Dot(dout + at, out + at, f.head_size);
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

template <typename T>
FT_INLINE void PackKeys(const AttentionArgs& f, int64_t at, const KeyTile& key) {
  const int64_t n = f.head_size, tile = AttentionTile(n), ldk = f.kv_stride;
  PackTransposed(static_cast<const T*>(f.k) + at, ldk, key.keys, n, key.keys_transposed, tile);
  PackTransposed(static_cast<const T*>(f.v) + at, ldk, key.keys, n, key.values_transposed, tile);
  PackRows(static_cast<const T*>(f.k) + at, ldk, key.keys, n, key.rows, RoundUp(n));
}

template <typename T>
FT_INLINE void PackQueries(const AttentionGradArgs& args, int64_t batch, int64_t head, int64_t query_begin,
                           int64_t queries, const QueryScratch& query) {
  const AttentionArgs& f = args.forward;
  const int64_t n = f.head_size;
  PackRows(static_cast<const T*>(f.q) + QueryOffset(f, batch, query_begin, head), f.q_stride, queries, n,
           query.queries, RoundUp(n));
  PackRows(static_cast<const T*>(args.dout) + OutOffset(f, batch, query_begin, head), f.heads * n, queries, n,
           query.dout, RoundUp(n));
}

// Fills probabilities and dscores.
FT_INLINE void ScoreGrads(const AttentionGradArgs& args, const KeyTile& key, const QueryScratch& query,
                          int64_t batch, int64_t head, int64_t query_begin, int64_t queries) {
  const AttentionArgs& f = args.forward;
  const int64_t n = f.head_size, tile = AttentionTile(n), width = RoundUp(n);
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
}

// dq of f32: every query sees the first tile of keys, which sets it; the others add to it.
FT_INLINE void AddToQueries(float* dq, int64_t ld, const float* part, int64_t width, int64_t rows, int64_t n,
                            bool first) {
  for (int64_t i = 0; i < rows; ++i, dq += ld, part += width) {
    // The check takes = and += below an OpenMP pragma for the same. NOLINTNEXTLINE(bugprone-branch-clone)
    if (first) {
#pragma omp simd
      for (int64_t s = 0; s < n; ++s) dq[s] = part[s];
    } else {
#pragma omp simd
      for (int64_t s = 0; s < n; ++s) dq[s] += part[s];
    }
  }
}

template <typename T>
FT_INLINE void BackwardTile(const AttentionGradArgs& args, const KeyTile& key, const QueryScratch& query,
                            int64_t batch, int64_t head, int64_t query_begin) {
  const AttentionArgs& f = args.forward;
  const int64_t n = f.head_size, tile = AttentionTile(n), width = RoundUp(n);
  const int64_t queries = Smaller(tile, f.positions - query_begin);
  PackQueries<T>(args, batch, head, query_begin, queries, query);
  ScoreGrads(args, key, query, batch, head, query_begin, queries);
  TileProduct(key.keys, width, queries, {query.probabilities, 1, tile}, query.dout, width, key.dv, width,
              true);
  TileProduct(key.keys, width, queries, {query.dscores, 1, tile}, query.queries, width, key.dk, width, true);
  if constexpr (kInPlace<T>) {
    TileProduct(queries, width, key.keys, {query.dscores, tile, 1}, key.rows, width, query.dq, width, false);
    AddToQueries(static_cast<T*>(args.dq) + QueryOffset(f, batch, query_begin, head), f.q_stride, query.dq,
                 width, queries, n, key.begin == 0);
  }
}

// 160 KiB of stack.
struct GradBuffer {
  alignas(64) float data[10 * kMaxTile * kMaxTile];
};

// Hands the buffer out to both.
FT_INLINE void TakeScratch(GradBuffer& buffer, int64_t n, KeyTile& key, QueryScratch& query) {
  const int64_t tile = AttentionTile(n), width = RoundUp(n);
  Scratch scratch{buffer.data};
  key = {0,
         0,
         scratch.Take(n * tile),
         scratch.Take(n * tile),
         scratch.Take(tile * width),
         scratch.Take(tile * width),
         scratch.Take(tile * width)};
  query = {scratch.Take(tile * width), scratch.Take(tile * width), scratch.Take(tile * width),
           scratch.Take(tile * tile), scratch.Take(tile * tile)};
}

template <typename T>
void Backward(const AttentionGradArgs& args, int64_t batch, int64_t kv_head) {
  const AttentionArgs& f = args.forward;
  const int64_t n = f.head_size, tile = AttentionTile(n), width = RoundUp(n);
  const int64_t ldk = f.kv_stride, group = f.heads / f.kv_heads;
  GradBuffer buffer;
  KeyTile key;
  QueryScratch query;
  TakeScratch(buffer, n, key, query);
  for (key.begin = 0; key.begin < f.positions; key.begin += tile) {
    key.keys = Smaller(tile, f.positions - key.begin);
    const int64_t at = KeyOffset(f, batch, key.begin, kv_head);
    PackKeys<T>(f, at, key);
    for (int64_t i = 0; i < tile * width; ++i) key.dk[i] = key.dv[i] = 0.0f;
    for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      for (int64_t q = f.causal ? key.begin : 0; q < f.positions; q += tile)
        BackwardTile<T>(args, key, query, batch, head, q);
    }
    for (int64_t i = 0; i < key.keys; ++i) {
      StoreFloats(key.dk + i * width, n, static_cast<T*>(args.dk) + at + i * ldk);
      StoreFloats(key.dv + i * width, n, static_cast<T*>(args.dv) + at + i * ldk);
    }
  }
}

template <typename T>
void QueryGrad(const AttentionGradArgs& args, int64_t batch, int64_t head, int64_t query_tile) {
  const AttentionArgs& f = args.forward;
  const int64_t n = f.head_size, tile = AttentionTile(n), width = RoundUp(n);
  const int64_t kv_head = head / (f.heads / f.kv_heads);
  GradBuffer buffer;
  KeyTile key;
  QueryScratch query;
  TakeScratch(buffer, n, key, query);
  const int64_t query_begin = query_tile * tile, queries = Smaller(tile, f.positions - query_begin);
  PackQueries<T>(args, batch, head, query_begin, queries, query);
  const int64_t key_end = f.causal ? query_begin + queries : f.positions;
  for (key.begin = 0; key.begin < key_end; key.begin += tile) {
    key.keys = Smaller(tile, f.positions - key.begin);
    PackKeys<T>(f, KeyOffset(f, batch, key.begin, kv_head), key);
    ScoreGrads(args, key, query, batch, head, query_begin, queries);
    TileProduct(queries, width, key.keys, {query.dscores, tile, 1}, key.rows, width, query.dq, width,
                key.begin > 0);
  }
  T* dq = static_cast<T*>(args.dq) + QueryOffset(f, batch, query_begin, head);
  for (int64_t i = 0; i < queries; ++i) StoreFloats(query.dq + i * width, n, dq + i * f.q_stride);
}

}  // namespace

extern const AttentionRoutines kAttention;
const AttentionRoutines kAttention = {FT_EVERY_FLOAT(Forward),
                                      FT_EVERY_FLOAT(RowSums),
                                      FT_EVERY_FLOAT(Backward),
                                      {nullptr, QueryGrad<BFloat16>, QueryGrad<Float16>}};

}  // namespace ft::cpu::FT_ISA
