// After T. Dao et al., "FlashAttention", 2022: softmax by tiles of keys with a running maximum.
//
// Scores are made as keys x queries, so that queries lie across the lanes of vectors: maxima and sums over
// keys need no look across lanes, and keys and values are read as they lie. Exponentials are powers of 2.
#include "runtime/kernels/attention/cpu_loops.h"

#include <float.h>
#include <math.h>

#include "runtime/kernels/attention/cpu_tiles.h"

namespace ft::cpu::FT_ISA {
namespace {

// Queries of one head that lie side by side in the columns of a tile.
struct Panel {
  const float* queries;  // [units of a head, kTileColumns]
  float* sums;           // [head_size, kTileColumns]: of probabilities times values
  Vector maximum[kTileVectors], total[kTileVectors];
  int64_t position;  // of the first query
  float slope;       // of its head, over ScoreFactors::outer
};

struct KeyTile {
  int64_t begin, keys;
  float* rows;    // keys [keys, units of a head]
  float* values;  // [units of keys, head_size]
  float* scores;  // [keys, kTileColumns], then probabilities
  float* packed;  // probabilities in units, where those are not f32
};

// Scores of key `key`, at `scores`, become minus infinity for queries before `first` and from `end` on, both
// counted from the first query of the panel.
FT_INLINE void HideKey(float* scores, int64_t first, int64_t end) {
  const Vector lane = LaneNumbers(), hidden = Broadcast(-__builtin_inff());
#pragma GCC unroll 2
  for (int j = 0; j < kTileVectors; ++j) {
    float* at = scores + j * kLanes;
    const Vector low = Broadcast(static_cast<float>(first - j * kLanes)),
                 high = Broadcast(static_cast<float>(end - j * kLanes));
    const Vector seen = lane < low ? hidden : LoadVector(at);
    StoreVector(at, lane < high ? seen : hidden);
  }
}

// Hides `keys` of a tile from the queries of a panel that do not see them.
FT_INLINE void Mask(const AttentionSpan& span, float* scores, int64_t key_begin, int64_t keys,
                    int64_t position) {
  const auto hide = [=](int64_t from, int64_t to) __attribute__((always_inline)) {
    for (int64_t i = from; i < to; ++i) {
      const int64_t key = key_begin + i - position;
      HideKey(scores + i * kTileColumns, key - span.after + 1, key + span.before);
    }
  };
  // The last query does not see all keys before it, the first not all behind it.
  hide(0, Smaller(keys, position + kTileColumns - span.before - key_begin));
  hide(Larger(0, position + span.after - key_begin), keys);
}

// The same where queries of a panel are in several segments.
[[gnu::noinline]] void MaskSegments(const AttentionSpan& span, const SegmentBounds* segments, float* scores,
                                    int64_t key_begin, int64_t keys, int64_t position) {
  for (int64_t i = 0; i < keys; ++i) {
    const int64_t key = key_begin + i;
    const int64_t first = Larger(key - span.after + 1, segments[key].begin) - position,
                  end = Smaller(key + span.before, segments[key].end) - position;
    if (first > 0 || end < kTileColumns) HideKey(scores + i * kTileColumns, first, end);
  }
}

// Drops probabilities of keys from key_begin on. Queries behind the last one draw numbers that nobody uses.
[[gnu::noinline]] void DropProbabilities(const AttentionArgs& args, uint64_t row, int64_t key_begin,
                                         int64_t keys, float* probabilities) {
  float factors[kAttentionTile];
  for (uint64_t j = 0; j < kTileColumns; ++j) {
    const uint64_t element = args.dropout.first + (row + j) * static_cast<uint64_t>(args.positions) +
                             static_cast<uint64_t>(key_begin);
    DrawFactors(args.dropout, element, factors);
    for (int64_t i = 0; i < keys; ++i)
      probabilities[i * kTileColumns + static_cast<int64_t>(j)] *= factors[i];
  }
}

// Adds slope * (key's position - query's).
FT_INLINE void AddBias(float slope, float* scores, int64_t key_begin, int64_t keys, int64_t position) {
  const Vector lanes = LaneNumbers();
  for (int64_t i = 0; i < keys; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < kTileVectors; ++j) {
      float* at = scores + i * kTileColumns + j * kLanes;
      const Vector distance = Broadcast(static_cast<float>(key_begin + i - position - j * kLanes)) - lanes;
      StoreVector(at, MultiplyAdd(distance, Broadcast(slope), LoadVector(at)));
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

// One tile of keys and values into the sums of a panel: the first that it sees, where `first`. `row` is the
// number of the panel's first query among the queries of all heads and sequences.
template <typename Units>
FT_INLINE void AddKeys(const AttentionArgs& args, const Sequence& sequence, int64_t row, const KeyTile& tile,
                       const ScoreFactors& factors, Panel& panel, bool first) {
  const int64_t n = args.head_size, units = UnitCount<Units>(n);
  const int64_t keys =
      Smaller(tile.keys, KeysSeen(args, sequence, panel.position, kTileColumns).end - tile.begin);
  WithHeadStride(HeadStride(units), [&](auto stride) __attribute__((always_inline)) {
    TileProduct<Units>(keys, kTileColumns, units, Left<decltype(stride)::value>{tile.rows, 0}, panel.queries,
                       kTileColumns, tile.scores, kTileColumns, false);
  });
  if (factors.capped) CapScores(factors.inner, keys * kTileColumns, tile.scores);
  if (panel.slope != 0.0f) AddBias(panel.slope, tile.scores, tile.begin, keys, panel.position);
  if (sequence.segments == nullptr) {
    Mask(args.span, tile.scores, tile.begin, keys, panel.position);
  } else {
    MaskSegments(args.span, sequence.segments, tile.scores, tile.begin, keys, panel.position);
  }
  Softmax(panel, tile.scores, keys, factors.outer * kLog2E, n, first);
  if (args.drops()) DropProbabilities(args, static_cast<uint64_t>(row), tile.begin, keys, tile.scores);
  const float* probabilities = tile.scores;
  if constexpr (Units::kElements > 1) {
    PackAcross<Units>(tile.scores, kTileColumns, keys, kTileColumns, tile.packed, kTileColumns);
    probabilities = tile.packed;
  }
  TileProduct<Units>(n, kTileColumns, UnitCount<Units>(keys),
                     LeftAcross<Units>{tile.values, HeadColumns(n) + kPadRows}, probabilities, kTileColumns,
                     panel.sums, kTileColumns, !first);
}

// What queries that see no key have instead of sums that were not made.
[[gnu::noinline]] void ClearUnseen(Panel& panel, int64_t head_size) {
  for (int j = 0; j < kTileVectors; ++j) {
    const Integers unseen = panel.total[j] == Vector{};
    if (!AnyLane(unseen)) continue;
    panel.total[j] = unseen ? Broadcast(1.0f) : panel.total[j];
    panel.maximum[j] = unseen ? Vector{} : panel.maximum[j];
    for (int64_t i = 0; i < head_size; ++i) {
      float* at = panel.sums + i * kTileColumns + j * kLanes;
      StoreVector(at, unseen ? Vector{} : LoadVector(at));
    }
  }
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

// Tiles of keys that the panels, `across` of each head from `head` on, see pass by all of them.
template <typename Units, typename T>
FT_INLINE void AddTiles(const AttentionArgs& args, int64_t batch, int64_t head, int64_t begin, int64_t end,
                        KeyTile tile, Panel* panels, int64_t count, int64_t across) {
  const int64_t n = args.head_size, kv_head = head / (args.heads / args.kv_heads);
  const Sequence sequence = SequenceOf(args, batch);
  const int64_t head_stride = HeadStride(UnitCount<Units>(n)), value_stride = HeadColumns(n) + kPadRows;
  const ScoreFactors factors = FactorsOf(args);
  const KeyRange seen = KeysSeen(args, sequence, begin, end - begin);
  tile.begin = Larger(seen.first, 0) / kAttentionTile * kAttentionTile;
  for (; tile.begin < seen.end; tile.begin += kAttentionTile) {
    tile.keys = Smaller(kAttentionTile, seen.end - tile.begin);
    const int64_t at = KeyOffset(args, batch, tile.begin, kv_head);
    PackAlong<Units>(static_cast<const T*>(args.k) + at, args.kv_stride, tile.keys, n, tile.rows,
                     head_stride);
    PackLeft<Units>(static_cast<const T*>(args.v) + at, args.kv_stride, tile.keys, n, tile.values,
                    value_stride);
    for (int64_t i = 0; i < count; ++i) {
      const KeyRange of_panel = KeysSeen(args, sequence, panels[i].position, kTileColumns);
      if (of_panel.end <= Larger(tile.begin, of_panel.first) || of_panel.first >= tile.begin + kAttentionTile)
        continue;
      const int64_t row = (batch * args.heads + head + i / across) * args.positions + panels[i].position;
      AddKeys<Units>(args, sequence, row, tile, factors, panels[i], tile.begin <= Larger(of_panel.first, 0));
    }
  }
}

template <typename T>
void Forward(const AttentionArgs& args, int64_t batch, int64_t head_begin, int64_t query_tile, void* memory) {
  using Units = UnitsOf<T>;
  [[maybe_unused]] const TileSession<Units> session;
  constexpr int64_t kPanels = kAttentionTile / kTileColumns;
  const int64_t n = args.head_size, units = UnitCount<Units>(n), heads = AttentionHeadsTogether(args);
  const int64_t begin = query_tile * kAttentionTile, end = Smaller(args.positions, begin + kAttentionTile);
  Scratch scratch(memory);
  KeyTile tile = {};
  tile.rows = scratch.Take((kAttentionTile + kPadRows) * HeadStride(units));
  tile.values = scratch.Take(kAttentionTile * (HeadColumns(n) + kPadRows));
  tile.scores = scratch.Take((kAttentionTile + kPadRows) * kTileColumns);
  tile.packed = scratch.Take(kAttentionTile * kTileColumns);
  Panel panels[kMaxHeadsTogether * kPanels];
  const int64_t across = (end - begin + kTileColumns - 1) / kTileColumns, count = heads * across;
  for (int64_t i = 0; i < count; ++i) {
    float* queries = scratch.Take(RoundUp(units, kLanes) * kTileColumns);
    const int64_t position = begin + i % across * kTileColumns, head = head_begin + i / across;
    PackTransposed<Units>(static_cast<const T*>(args.q) + QueryOffset(args, batch, position, head),
                          args.q_stride, Smaller(kTileColumns, end - position), n, queries, kTileColumns);
    const float slope = args.slopes == nullptr ? 0.0f : args.slopes[head] / FactorsOf(args).outer;
    panels[i] = {queries, scratch.Take((n + kPadRows) * kTileColumns), {}, {}, position, slope};
    // Finite: a query may see no key of the first tile that its panel sees.
    for (Vector& maximum : panels[i].maximum) maximum = Broadcast(-FLT_MAX);
  }
  AddTiles<Units, T>(args, batch, head_begin, begin, end, tile, panels, count, across);
  for (int64_t i = 0; i < count; ++i) {
    if (args.lengths != nullptr) ClearUnseen(panels[i], n);
    StorePanel<T>(args, batch, head_begin + i / across, panels[i]);
  }
}

}  // namespace

extern const AttentionLoops kAttention;
const AttentionLoops kAttention = {FT_EVERY_FLOAT(Forward)};

}  // namespace ft::cpu::FT_ISA
