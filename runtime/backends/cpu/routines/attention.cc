// After T. Dao et al., "FlashAttention", 2022: softmax by tiles of keys with a running maximum.
//
// Scores are made as keys x queries, so that queries lie across the lanes of vectors: maxima and sums over
// keys need no look across lanes, and keys and values are read as they lie. Exponentials are powers of 2.
#include "runtime/backends/cpu/routines/attention.h"

#include <math.h>

#include "runtime/backends/cpu/routines/attention_tiles.h"

namespace ft::cpu::FT_ISA {
namespace {

// Queries of one head that lie side by side in the columns of a tile.
struct Panel {
  const float* queries;  // [units of a head, kTileColumns]
  float* sums;           // [head_size, kTileColumns]: of probabilities times values
  Vector maximum[kTileVectors], total[kTileVectors];
  int64_t position;  // of the first query
};

struct KeyTile {
  int64_t begin, keys;
  float* rows;    // keys [keys, units of a head]
  float* values;  // [units of keys, head_size]
  float* scores;  // [keys, kTileColumns], then probabilities
  float* packed;  // probabilities in units, where those are not f32
};

// Scores of keys that a query does not see become minus infinity. `keys` are in the tile.
FT_INLINE void MaskFuture(float* scores, int64_t key_begin, int64_t keys, int64_t position) {
  Integers lane;
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) lane[i] = i;
  for (int64_t key = Larger(0, position + 1 - key_begin); key < keys; ++key) {
    const int32_t first = static_cast<int32_t>(key_begin + key - position);  // the first lane that sees it
#pragma GCC unroll 2
    for (int j = 0; j < kTileVectors; ++j) {
      float* at = scores + key * kTileColumns + j * kLanes;
      const Vector hidden = Broadcast(-__builtin_inff());
      StoreVector(at, lane + j * kLanes < first ? hidden : LoadVector(at));
    }
  }
}

// Scores become probabilities relative to the running maximum; earlier sums are rescaled to it.
FT_INLINE void Softmax(Panel& panel, float* scores, int64_t keys, float scale, int64_t head_size,
                       bool first) {
  Vector correction[kTileVectors];
  bool corrects = false;
#pragma GCC unroll 2
  for (int j = 0; j < kTileVectors; ++j) {
    float* at = scores + j * kLanes;
    Vector top = Broadcast(-__builtin_inff()), other = top;
    int64_t key = 0;
    for (; key + 2 <= keys; key += 2) {
      top = Maximum(LoadVector(at + key * kTileColumns), top);
      other = Maximum(LoadVector(at + (key + 1) * kTileColumns), other);
    }
    if (key < keys) top = Maximum(LoadVector(at + key * kTileColumns), top);
    const Vector maximum = Maximum(Maximum(top, other) * scale, panel.maximum[j]);
    correction[j] = SoftmaxExp2(panel.maximum[j] - maximum);
    corrects = corrects || AnyLane(panel.maximum[j] != maximum);
    panel.maximum[j] = maximum;
    Vector sum = {};
#pragma GCC unroll 2
    for (key = 0; key < keys; ++key) {
      const Vector p =
          SoftmaxExp2(MultiplyAdd(LoadVector(at + key * kTileColumns), Broadcast(scale), -maximum));
      StoreVector(at + key * kTileColumns, p);
      sum += p;
    }
    panel.total[j] = MultiplyAdd(panel.total[j], correction[j], sum);
  }
  if (first || !corrects) return;
  for (int64_t i = 0; i < head_size; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < kTileVectors; ++j) {
      float* at = panel.sums + i * kTileColumns + j * kLanes;
      StoreVector(at, LoadVector(at) * correction[j]);
    }
  }
}

// One tile of keys and values into the sums of a panel.
template <typename Units>
FT_INLINE void AddKeys(const AttentionArgs& args, const KeyTile& tile, Panel& panel) {
  const int64_t n = args.head_size, units = UnitCount<Units>(n);
  const int64_t after = args.causal ? panel.position + kTileColumns : args.positions;
  const int64_t keys = Smaller(tile.keys, after - tile.begin);
  WithHeadStride(HeadStride(units), [&](auto stride) __attribute__((always_inline)) {
    TileProduct<Units>(keys, kTileColumns, units, Left<decltype(stride)::value>{tile.rows, 0}, panel.queries,
                       kTileColumns, tile.scores, kTileColumns, false);
  });
  if (args.causal) MaskFuture(tile.scores, tile.begin, keys, panel.position);
  Softmax(panel, tile.scores, keys, args.scale * kLog2E, n, tile.begin == 0);
  const float* probabilities = tile.scores;
  if constexpr (Units::kElements > 1) {
    PackAcross<Units>(tile.scores, kTileColumns, keys, kTileColumns, tile.packed, kTileColumns);
    probabilities = tile.packed;
  }
  TileProduct<Units>(n, kTileColumns, UnitCount<Units>(keys),
                     LeftAcross<Units>{tile.values, HeadColumns(n) + kPadRows}, probabilities, kTileColumns,
                     panel.sums, kTileColumns, tile.begin > 0);
}

// The sums over the totals, transposed, and the logs of the sums of exponentials.
template <typename T>
FT_INLINE void StorePanel(const AttentionArgs& args, int64_t batch, int64_t head, const Panel& panel) {
  const int64_t n = args.head_size;
  float* lse = args.lse + (batch * args.heads + head) * args.positions;
  for (int j = 0; j < kTileVectors; ++j) {
    const int64_t position = panel.position + j * kLanes,
                  queries = Smaller(kLanes, args.positions - position);
    const Vector inverse = 1.0f / panel.total[j];
    for (int64_t s = 0; s < n; s += kLanes) {
      Vector block[kLanes];
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) {
        block[i] = LoadVector(panel.sums + (s + i) * kTileColumns + j * kLanes) * inverse;
      }
      TransposeVectors(block);
      for (int64_t i = 0; i < queries; ++i) {
        StoreLanes(static_cast<T*>(args.out) + OutOffset(args, batch, position + i, head) + s, block[i],
                   n - s);
      }
    }
    for (int64_t i = 0; i < queries; ++i) {
      lse[position + i] = panel.maximum[j][i] * kLn2 + logf(panel.total[j][i]);
    }
  }
}

template <typename T>
void Forward(const AttentionArgs& args, int64_t batch, int64_t head_begin, int64_t query_tile, void* memory) {
  using Units = UnitsOf<T>;
  [[maybe_unused]] const TileSession<Units> session;
  constexpr int64_t kPanels = kAttentionTile / kTileColumns;
  const int64_t n = args.head_size, units = UnitCount<Units>(n), heads = AttentionHeadsTogether(args);
  const int64_t kv_head = head_begin / (args.heads / args.kv_heads);
  const int64_t begin = query_tile * kAttentionTile, end = Smaller(args.positions, begin + kAttentionTile);
  const int64_t head_stride = HeadStride(units), value_stride = HeadColumns(n) + kPadRows;
  Scratch scratch(memory);
  KeyTile tile = {};
  tile.rows = scratch.Take((kAttentionTile + kPadRows) * head_stride);
  tile.values = scratch.Take(kAttentionTile * value_stride);
  tile.scores = scratch.Take((kAttentionTile + kPadRows) * kTileColumns);
  tile.packed = scratch.Take(kAttentionTile * kTileColumns);
  Panel panels[kMaxHeadsTogether * kPanels];
  const int64_t across = (end - begin + kTileColumns - 1) / kTileColumns, count = heads * across;
  for (int64_t i = 0; i < count; ++i) {
    float* queries = scratch.Take(RoundUp(units, kLanes) * kTileColumns);
    const int64_t position = begin + i % across * kTileColumns;
    const int64_t at = QueryOffset(args, batch, position, head_begin + i / across);
    PackTransposed<Units>(static_cast<const T*>(args.q) + at, args.q_stride,
                          Smaller(kTileColumns, end - position), n, queries, kTileColumns);
    panels[i] = {queries, scratch.Take((n + kPadRows) * kTileColumns), {}, {}, position};
    for (Vector& maximum : panels[i].maximum) maximum = Broadcast(-__builtin_inff());
  }
  const int64_t key_end = args.causal ? end : args.positions;
  for (; tile.begin < key_end; tile.begin += kAttentionTile) {
    tile.keys = Smaller(kAttentionTile, key_end - tile.begin);
    const int64_t at = KeyOffset(args, batch, tile.begin, kv_head);
    PackAlong<Units>(static_cast<const T*>(args.k) + at, args.kv_stride, tile.keys, n, tile.rows,
                     head_stride);
    PackLeft<Units>(static_cast<const T*>(args.v) + at, args.kv_stride, tile.keys, n, tile.values,
                    value_stride);
    for (int64_t i = 0; i < count; ++i) {
      if (args.causal && panels[i].position + kTileColumns <= tile.begin) continue;
      AddKeys<Units>(args, tile, panels[i]);
    }
  }
  for (int64_t i = 0; i < count; ++i) StorePanel<T>(args, batch, head_begin + i / across, panels[i]);
}

}  // namespace

extern const AttentionRoutines kAttention;
const AttentionRoutines kAttention = {FT_EVERY_FLOAT(Forward)};

}  // namespace ft::cpu::FT_ISA
