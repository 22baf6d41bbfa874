// After T. Dao et al., "FlashAttention", 2022: probabilities are computed again from the log of the sum of
// exponentials; one pass over pairs of tiles gives all three gradients.
#include "runtime/kernels/attention/cpu_tiles.h"

namespace ft::cpu::FT_ISA {
namespace {

constexpr int64_t kTile = kAttentionTile;
constexpr int64_t kTilesOfBlock = kAttentionBlock / kAttentionTile;
constexpr int64_t kTileElements = (kTile + kPadRows) * kTile;

template <typename T>
FT_INLINE float Dot(const T* a, const T* b, int64_t n) {
  Vector sum = {};
  for (int64_t i = 0; i < n; i += kLanes) {
    sum = MultiplyAdd(LoadLanes(a + i, n - i), LoadLanes(b + i, n - i), sum);
  }
  float total = 0.0f;
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) total += sum[i];
  return total;
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

// A tile of keys and its gradients, while queries pass by.
struct KeyTile {
  int64_t begin, keys;
  float* keys_transposed;    // [units of a head, kTile]
  float* values_transposed;  // [units of a head, kTile]
  float* rows;               // keys [units of keys, head_size]
  float *dk, *dv;            // [keys, head_size]
};

// A tile of queries of one head.
struct QueryTile {
  int64_t begin, queries;
  float *along, *dout_along;    // [queries, units of a head]
  float *across, *dout_across;  // [units of queries, head_size]
  float* dq;                    // [queries, head_size]
  float *p, *ds;                // [queries, kTile]: probabilities, gradients of the scores
  float *p_across, *ds_across;  // [units of queries, kTile]
  float* ds_along;              // [queries, units of keys]
};

struct Strides {
  int64_t along;   // between rows of units of a head
  int64_t across;  // between rows of elements of a head
};

// `blocks` are units of f32 as they lie: then what lies along rows lies across columns as well.
template <typename Units>
constexpr bool kSameBothWays = Units::kElements == 1;

template <typename Units>
FT_INLINE Strides StridesFor(int64_t n) {
  const int64_t along = HeadStride(UnitCount<Units>(n));
  return {along, kSameBothWays<Units> ? along : HeadColumns(n) + kPadRows};
}

template <typename Units>
FT_INLINE void TakeScratch(Scratch& scratch, int64_t n, const Strides& strides, KeyTile* keys,
                           QueryTile& query) {
  const int64_t units = RoundUp(UnitCount<Units>(n), kLanes);
  for (int64_t i = 0; i < kTilesOfBlock; ++i) {
    keys[i].keys_transposed = scratch.Take(units * kTile);
    keys[i].values_transposed = scratch.Take(units * kTile);
    keys[i].rows = scratch.Take(kTile * strides.across);
    keys[i].dk = scratch.Take((kTile + kPadRows) * strides.across);
    keys[i].dv = scratch.Take((kTile + kPadRows) * strides.across);
  }
  query.along = scratch.Take((kTile + kPadRows) * strides.along);
  query.dout_along = scratch.Take((kTile + kPadRows) * strides.along);
  query.across = kSameBothWays<Units> ? query.along : scratch.Take(kTile * strides.across);
  query.dout_across = kSameBothWays<Units> ? query.dout_along : scratch.Take(kTile * strides.across);
  query.dq = scratch.Take((kTile + kPadRows) * strides.across);
  query.p = scratch.Take(kTileElements);
  query.ds = scratch.Take(kTileElements);
  query.p_across = kSameBothWays<Units> ? query.p : scratch.Take(kTileElements);
  query.ds_across = kSameBothWays<Units> ? query.ds : scratch.Take(kTileElements);
  query.ds_along = kSameBothWays<Units> ? query.ds : scratch.Take(kTileElements);
}

// to [rows, n] = or += from.
FT_INLINE void AddRows(const float* from, int64_t ldf, int64_t rows, int64_t n, float* to, int64_t ldt,
                       bool first) {
  for (int64_t i = 0; i < rows; ++i, from += ldf, to += ldt) {
    for (int64_t s = 0; s < n; s += kLanes) {
      const Vector v = LoadVector(from + s);
      StoreLanes(to + s, first ? v : LoadLanes(to + s, n - s) + v, n - s);
    }
  }
}

// Asks for rows that AddRows will add to, while products are made.
FT_INLINE void PrefetchRows(const float* to, int64_t ldt, int64_t rows, int64_t n) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t s = 0; s < n; s += 16) __builtin_prefetch(to + i * ldt + s, 1, 2);
  }
}

// Where the sums of dq, and those of dk and dv, of a position begin.
FT_INLINE int64_t QuerySums(const AttentionGradArgs& args, int64_t batch, int64_t position, int64_t head) {
  const AttentionArgs& f = args.forward;
  return ((batch - args.first_batch) * f.positions + position) * args.sums.q_stride + head * f.head_size;
}
FT_INLINE int64_t KeySums(const AttentionGradArgs& args, int64_t batch, int64_t position, int64_t kv_head) {
  const AttentionArgs& f = args.forward;
  return ((batch - args.first_batch) * f.positions + position) * args.sums.kv_stride + kv_head * f.head_size;
}

template <typename Units, typename T>
FT_INLINE void BeginKeys(const AttentionArgs& f, int64_t batch, int64_t kv_head, int64_t begin,
                         const Strides& strides, KeyTile& key) {
  const int64_t n = f.head_size, ld = f.kv_stride, at = KeyOffset(f, batch, begin, kv_head);
  key.begin = begin;
  key.keys = Smaller(kTile, f.positions - begin);
  const T* keys = static_cast<const T*>(f.k) + at;
  PackTransposed<Units>(keys, ld, key.keys, n, key.keys_transposed, kTile);
  PackTransposed<Units>(static_cast<const T*>(f.v) + at, ld, key.keys, n, key.values_transposed, kTile);
  PackAcross<Units>(keys, ld, key.keys, n, key.rows, strides.across);
  for (int64_t i = 0; i < kTile * strides.across; i += kLanes) {
    StoreVector(key.dk + i, Vector{});
    StoreVector(key.dv + i, Vector{});
  }
}

template <typename Units, typename T>
FT_INLINE void BeginQueries(const AttentionGradArgs& args, int64_t batch, int64_t head, int64_t begin,
                            const Strides& strides, QueryTile& query) {
  const AttentionArgs& f = args.forward;
  const int64_t n = f.head_size, ld = f.heads * n;
  query.begin = begin;
  query.queries = Smaller(kTile, f.positions - begin);
  const T* q = static_cast<const T*>(f.q) + QueryOffset(f, batch, begin, head);
  const T* dout = static_cast<const T*>(args.dout) + OutOffset(f, batch, begin, head);
  PackAlong<Units>(q, f.q_stride, query.queries, n, query.along, strides.along);
  PackAlong<Units>(dout, ld, query.queries, n, query.dout_along, strides.along);
  if constexpr (kSameBothWays<Units>) return;
  PackAcross<Units>(q, f.q_stride, query.queries, n, query.across, strides.across);
  PackAcross<Units>(dout, ld, query.queries, n, query.dout_across, strides.across);
}

// Where scores begin to count and what their exponents are off by, for a row of a pair of tiles.
struct ScoreRow {
  int64_t first, end;  // keys of the tile that the query sees
  float slope2;  // over ln 2: times (key's position - query's), `distance` for the first key of the tile
  float distance;
};
FT_INLINE ScoreRow RowOf(const AttentionArgs& f, const Sequence& sequence, const KeyTile& key, int64_t head,
                         int64_t query) {
  const KeyRange seen = KeysSeen(f, sequence, query, 1);
  return {Smaller(Larger(seen.first - key.begin, 0), kTile), Smaller(seen.end - key.begin, key.keys),
          f.slopes == nullptr ? 0.0f : f.slopes[head] * kLog2E, static_cast<float>(key.begin - query)};
}

// Scores and gradients of probabilities become probabilities and gradients of products: p = exp(s - lse), ds
// = p (dp - row sum) scale, times 1 - tanh^2 where scores are capped. What a query does not see becomes zero.
// With dropout p and dp are multiplied by its factors; the p of ds is not.
template <bool kDrops>
FT_INLINE void ScoreGrads(const AttentionGradArgs& args, const KeyTile& key, const QueryTile& query,
                          int64_t batch, int64_t head) {
  const AttentionArgs& f = args.forward;
  const Sequence sequence = SequenceOf(f, batch);
  alignas(64) float dropout[kDrops ? kTile : 1];
  const ScoreFactors factors = FactorsOf(f);
  const int64_t first = (batch * f.heads + head) * f.positions + query.begin;
  const Vector scale = Broadcast(f.scale), scale2 = Broadcast(factors.outer * kLog2E), lanes = LaneNumbers();
  for (int64_t i = 0; i < query.queries; ++i) {
    const ScoreRow row = RowOf(f, sequence, key, head, query.begin + i);
    if constexpr (kDrops) {
      DrawFactors(f.dropout,
                  f.dropout.first + static_cast<uint64_t>(first + i) * static_cast<uint64_t>(f.positions) +
                      static_cast<uint64_t>(key.begin),
                  dropout);
    }
    float *p = query.p + i * kTile, *ds = query.ds + i * kTile;
    const Vector lse = Broadcast(f.lse[first + i] * -kLog2E), row_sum = Broadcast(args.row_sums[first + i]);
    const int64_t begin = row.first / kLanes * kLanes;
    if (factors.capped) CapScores(factors.inner, row.end, p);
    int64_t j = begin;
    for (; j < row.end; j += kLanes) {
      const Vector score = LoadVector(p + j);
      Vector offset = lse, factor = scale;
      if (row.slope2 != 0.0f) {
        const Vector distance = lanes + (row.distance + static_cast<float>(j));
        offset = MultiplyAdd(distance, Broadcast(row.slope2), lse);
      }
      if (factors.capped) factor = scale - scale * score * score;
      const Vector probability = SoftmaxExp2(MultiplyAdd(score, scale2, offset));
      if constexpr (kDrops) {
        const Vector kept = LoadVector(dropout + j);
        StoreVector(p + j, probability * kept);
        StoreVector(ds + j, probability * (LoadVector(ds + j) * kept - row_sum) * factor);
      } else {
        StoreVector(p + j, probability);
        StoreVector(ds + j, probability * (LoadVector(ds + j) - row_sum) * factor);
      }
    }
    const auto clear = [=](int64_t from, int64_t to) __attribute__((always_inline)) {
      for (int64_t s = from; s < to; ++s) p[s] = ds[s] = 0.0f;
    };
    clear(0, row.first);
    clear(Larger(row.end, 0), kTile);
  }
}

// A pair of tiles. On the diagonal only what queries see is multiplied, to a tile of rows.
template <typename Units>
FT_INLINE void AddPair(const AttentionGradArgs& args, const KeyTile& key, const QueryTile& query,
                       const Strides& strides, int64_t batch, int64_t head, bool add_to_dq) {
  constexpr int64_t kElements = Units::kElements;
  const int64_t n = args.forward.head_size, units = UnitCount<Units>(n), columns = HeadColumns(n);
  const int64_t queries = query.queries, keys = key.keys;
  const bool diagonal = args.forward.causal() && key.begin == query.begin;
  const auto scores = [=](int64_t, int64_t end) __attribute__((always_inline)) {
    return Extent{0, units, diagonal ? Smaller(end, kTile) : RoundUp(keys, kTileColumns)};
  };
  WithHeadStride(strides.along, [&](auto stride) __attribute__((always_inline)) {
    using Rows = Left<decltype(stride)::value>;
    TileProduct<Units>(queries, Rows{query.along, 0}, key.keys_transposed, kTile, query.p, kTile, false,
                       scores);
    TileProduct<Units>(queries, Rows{query.dout_along, 0}, key.values_transposed, kTile, query.ds, kTile,
                       false, scores);
  });
  if (args.forward.drops()) {
    ScoreGrads<true>(args, key, query, batch, head);
  } else {
    ScoreGrads<false>(args, key, query, batch, head);
  }
  if constexpr (!kSameBothWays<Units>) {
    PackLeft<Units>(query.p, kTile, queries, kTile, query.p_across, kTile);
    PackLeft<Units>(query.ds, kTile, queries, kTile, query.ds_across, kTile);
    PackAlong<Units>(query.ds, kTile, queries, kTile, query.ds_along, kTile);
  }
  const auto of_keys = [=](int64_t begin, int64_t) __attribute__((always_inline)) {
    return Extent{diagonal ? begin / kElements : 0, UnitCount<Units>(queries), columns};
  };
  TileProduct<Units>(keys, LeftAcross<Units>{query.p_across, kTile}, query.dout_across, strides.across,
                     key.dv, strides.across, true, of_keys);
  TileProduct<Units>(keys, LeftAcross<Units>{query.ds_across, kTile}, query.across, strides.across, key.dk,
                     strides.across, true, of_keys);
  const auto of_queries = [=](int64_t, int64_t end) __attribute__((always_inline)) {
    return Extent{0, UnitCount<Units>(diagonal ? Smaller(end, keys) : keys), columns};
  };
  TileProduct<Units>(queries, Left<kTile>{query.ds_along, 0}, key.rows, strides.across, query.dq,
                     strides.across, add_to_dq, of_queries);
}

// The sums of queries that see no key of the first pair of blocks.
FT_INLINE void ClearRows(int64_t rows, int64_t n, float* to, int64_t ldt) {
  for (int64_t i = 0; i < rows; ++i, to += ldt) {
    for (int64_t s = 0; s < n; s += kLanes) StoreLanes(to + s, Vector{}, n - s);
  }
}

template <typename T>
void Backward(const AttentionGradArgs& args, int64_t batch, int64_t kv_head, int64_t query_block,
              int64_t key_block, bool first, void* memory) {
  using Units = UnitsOf<T>;
  const AttentionArgs& f = args.forward;
  const AttentionSums& sums = args.sums;
  const Sequence sequence = SequenceOf(f, batch);
  const int64_t n = f.head_size, sharing = f.heads / f.kv_heads;
  const int64_t key_begin = key_block * kAttentionBlock, query_begin = query_block * kAttentionBlock;
  const int64_t key_end = Smaller(f.positions, key_begin + kAttentionBlock),
                query_end = Smaller(f.positions, query_begin + kAttentionBlock);
  const KeyRange seen_by_block = KeysSeen(f, sequence, query_begin, query_end - query_begin);
  if (!first && Smaller(seen_by_block.end, key_end) <= Larger(seen_by_block.first, key_begin)) return;
  [[maybe_unused]] const TileSession<Units> session;
  const Strides strides = StridesFor<Units>(n);
  Scratch scratch(memory);
  KeyTile keys[kTilesOfBlock];
  QueryTile query;
  TakeScratch<Units>(scratch, n, strides, keys, query);
  const int64_t key_tiles = (key_end - key_begin + kTile - 1) / kTile;
  for (int64_t j = 0; j < key_tiles; ++j) {
    BeginKeys<Units, T>(f, batch, kv_head, key_begin + j * kTile, strides, keys[j]);
  }
  for (int64_t head = kv_head * sharing; head < (kv_head + 1) * sharing; ++head) {
    for (int64_t j = 0; j < key_tiles && !first && head + 1 == (kv_head + 1) * sharing; ++j) {
      const int64_t at = KeySums(args, batch, keys[j].begin, kv_head);
      PrefetchRows(sums.dk + at, sums.kv_stride, keys[j].keys, n);
      PrefetchRows(sums.dv + at, sums.kv_stride, keys[j].keys, n);
    }
    for (int64_t begin = query_begin; begin < query_end; begin += kTile) {
      const int64_t queries = Smaller(kTile, query_end - begin);
      const KeyRange seen = KeysSeen(f, sequence, begin, queries);
      const int64_t from = Larger(seen.first - key_begin, 0) / kTile,
                    to = Smaller(key_tiles, (seen.end - key_begin + kTile - 1) / kTile);
      float* dq = sums.dq + QuerySums(args, batch, begin, head);
      if (from >= to || seen.first >= seen.end) {
        if (first) ClearRows(queries, n, dq, sums.q_stride);
        continue;
      }
      BeginQueries<Units, T>(args, batch, head, begin, strides, query);
      if (!first) PrefetchRows(dq, sums.q_stride, query.queries, n);
      for (int64_t j = from; j < to; ++j) {
        AddPair<Units>(args, keys[j], query, strides, batch, head, j > from);
      }
      AddRows(query.dq, strides.across, query.queries, n, dq, sums.q_stride, first);
    }
  }
  for (int64_t j = 0; j < key_tiles; ++j) {
    const int64_t at = KeySums(args, batch, keys[j].begin, kv_head);
    AddRows(keys[j].dk, strides.across, keys[j].keys, n, sums.dk + at, sums.kv_stride, first);
    AddRows(keys[j].dv, strides.across, keys[j].keys, n, sums.dv + at, sums.kv_stride, first);
  }
}

template <typename T>
void StoreSums(const AttentionGradArgs& args, int64_t batch, int64_t block) {
  const AttentionArgs& f = args.forward;
  const int64_t q_width = f.heads * f.head_size, kv_width = f.kv_heads * f.head_size;
  const int64_t end = Smaller(f.positions, (block + 1) * kAttentionBlock);
  for (int64_t t = block * kAttentionBlock; t < end; ++t) {
    const int64_t at = KeyOffset(f, batch, t, 0), from = KeySums(args, batch, t, 0);
    StoreFloats(args.sums.dq + QuerySums(args, batch, t, 0), q_width,
                static_cast<T*>(args.dq) + QueryOffset(f, batch, t, 0));
    StoreFloats(args.sums.dk + from, kv_width, static_cast<T*>(args.dk) + at);
    StoreFloats(args.sums.dv + from, kv_width, static_cast<T*>(args.dv) + at);
  }
}

}  // namespace

extern const AttentionGradLoops kAttentionGrad;
const AttentionGradLoops kAttentionGrad = {
    FT_EVERY_FLOAT(RowSums), FT_EVERY_FLOAT(Backward), {nullptr, StoreSums<BFloat16>, StoreSums<Float16>}};

}  // namespace ft::cpu::FT_ISA
