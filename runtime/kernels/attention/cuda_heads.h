// What all kernels of attention know: which heads and positions a block has, which keys a query sees, what
// scores are made of.
#pragma once

#include <initializer_list>

#include "runtime/backends/cuda/device_code/element.h"
#include "runtime/backends/cuda/device_code/philox.h"
#include "runtime/kernels/attention/cuda_device.h"

namespace ft::cuda {

inline constexpr float kLog2E = 1.44269504088896341f, kLn2 = 0.693147180559945309f;

__device__ __forceinline__ int Smaller(int a, int b) { return a < b ? a : b; }
__device__ __forceinline__ int Larger(int a, int b) { return a > b ? a : b; }

// Of elements of 16 bits, when segments have been found and, for the gradient, row sums been made.
int TensorAttention(const AttentionArgs& args, StreamHandle stream);
int TensorAttentionGrad(const AttentionGradArgs& args, StreamHandle stream);
size_t TensorAttentionSharedBytes(int head_size);
size_t TensorAttentionGradSharedBytes(int head_size);

// What is said of the keys of a block's sequence.
struct Sequence {
  int length;                     // keys behind it do not count
  const SegmentBounds* segments;  // [positions]; nullptr: one segment
};
__device__ __forceinline__ Sequence SequenceOf(const AttentionShape& shape, const AttentionOptions& options,
                                               int batch) {
  return {options.lengths == nullptr ? shape.positions
                                     : Smaller(Larger(options.lengths[batch], 0), shape.positions),
          options.segments == nullptr ? nullptr : options.segments + int64_t{batch} * shape.positions};
}

// The keys from `first` up to `end`, which is not one of them, that a query sees: none where it is not behind
// `first`, which may be negative. Kernels without options ask Visible instead.
struct KeyRange {
  int first, end;
};
template <bool kOptions>
__device__ __forceinline__ KeyRange KeysSeen(const AttentionShape& shape, const Sequence& sequence,
                                             int query) {
  if (!kOptions || query >= shape.positions) return {0, 0};
  KeyRange seen = {query - shape.before + 1, Smaller(sequence.length, query + shape.after)};
  if (sequence.segments != nullptr) {
    const SegmentBounds segment = sequence.segments[query];
    seen = {Larger(seen.first, segment.begin), Smaller(seen.end, segment.end)};
  }
  return seen;
}

// `seen` are the query's.
template <bool kOptions>
__device__ __forceinline__ bool Visible(const AttentionShape& shape, const KeyRange& seen, int query,
                                        int key) {
  if (kOptions) return key >= seen.first && key < seen.end;
  return query < shape.positions && key < shape.positions && key > query - shape.before &&
         key - query < shape.after;
}

struct QueryAndKey {
  int query, key;
};
// Which probabilities of a tile dropout keeps: bit n for the n-th that this thread owns, of query q and key
// k, (q, k) = at(n). One at a time, so that the registers of the tiles stay what they are. `row` is that of
// the head's first query in [batch, heads, positions]. All are kept where there is no dropout.
template <bool kOptions, int kCount, typename At>
__device__ __forceinline__ uint32_t KeptOfTile(const AttentionShape& shape, const AttentionOptions& options,
                                               int row, const At& at) {
  static_assert(kCount <= 32);
  if (!kOptions || options.threshold == 0) return ~0u;
  const PhiloxKey key = {static_cast<uint64_t>(options.rng[0]), options.stream,
                         static_cast<uint32_t>(options.rng[1])};
  const uint64_t rows = uint64_t{1} * shape.batch * shape.heads * shape.positions;
  const uint64_t first = static_cast<uint64_t>(options.rng[2]) * rows;
  uint32_t kept = 0;
#pragma unroll 1
  for (int n = 0; n < kCount; ++n) {
    const QueryAndKey pair = at(n);
    const uint64_t element = (first + row + pair.query) * shape.positions + pair.key;
    const uint32_t word = Word(Philox(key, element / 4), static_cast<uint32_t>(element % 4));
    if (word >> 8 >= options.threshold) kept |= 1u << n;
  }
  return kept;
}
// The slope of a head, 0 where scores have no bias: BLOOM's (see ft.attention).
__device__ __forceinline__ float Slope(const AttentionShape& shape, int head) {
  const int sequence = shape.alibi_heads;
  if (sequence == 0) return 0.0f;
  const int exponent = head < sequence ? -8 * (head + 1) : -4 * (2 * (head - sequence) + 1);
  return exp2f(static_cast<float>(exponent) / static_cast<float>(sequence));
}

// A score before its bias is `outer` times this: tanh where scores are capped, else the product itself.
__device__ __forceinline__ float Capped(const AttentionShape& shape, float product) {
  return shape.softcap > 0.0f ? tanhf(product * (shape.scale / shape.softcap)) : product;
}
__device__ __forceinline__ float Outer(const AttentionShape& shape) {
  return shape.softcap > 0.0f ? shape.softcap : shape.scale;
}

// Where a head's rows lie in a tensor whose positions are `stride` elements apart, in elements.
struct HeadRows {
  int64_t offset;
  int stride;
};
__device__ __forceinline__ HeadRows RowsOfHead(const AttentionShape& shape, int batch, int head, int stride) {
  return {int64_t{batch} * shape.positions * stride + head * shape.head_size, stride};
}
__device__ __forceinline__ int64_t RowOffset(const HeadRows& rows, int row) {
  return rows.offset + int64_t{row} * rows.stride;
}

// The tile of queries of this block: tiles that see most keys come first.
struct QueryTile {
  int batch_head;  // batch * heads + head
  HeadRows q, kv, out;
  int begin, present;      // queries
  int key_begin, key_end;  // keys that some of them see, from a multiple of a tile's columns on
  float slope2;            // of the head, over ln 2
  Sequence sequence;       // with options
};
template <int kRows, int kColumns, bool kOptions>
__device__ __forceinline__ QueryTile QueryTileOfBlock(const AttentionShape& shape,
                                                      const AttentionOptions& options) {
  const int all_heads = shape.batch * shape.heads;
  const int batch_head = static_cast<int>(blockIdx.x) % all_heads;
  const int batch = batch_head / shape.heads, head = batch_head % shape.heads;
  const int begin = static_cast<int>(gridDim.x - 1 - blockIdx.x) / all_heads * kRows;
  const int present = Smaller(kRows, shape.positions - begin);
  QueryTile tile = {batch_head,
                    RowsOfHead(shape, batch, head, shape.q_stride),
                    RowsOfHead(shape, batch, head / (shape.heads / shape.kv_heads), shape.kv_stride),
                    RowsOfHead(shape, batch, head, shape.heads * shape.head_size),
                    begin,
                    present,
                    Larger(0, begin - shape.before + 1) / kColumns * kColumns,
                    Smaller(shape.positions, begin + present - 1 + shape.after),
                    Slope(shape, head) * kLog2E,
                    {}};
  if constexpr (kOptions) {
    tile.sequence = SequenceOf(shape, options, batch);
    tile.key_begin = Larger(0, KeysSeen<true>(shape, tile.sequence, begin).first) / kColumns * kColumns;
    tile.key_end = KeysSeen<true>(shape, tile.sequence, begin + present - 1).end;
  }
  return tile;
}

// The tile of keys of this block, and the queries that see some of them.
struct KeyTile {
  int batch, kv_head;
  HeadRows kv;
  int begin, present;          // keys
  int query_begin, query_end;  // from a multiple of a tile's columns on
  Sequence sequence;           // with options
};
template <int kRows, int kColumns, bool kOptions>
__device__ __forceinline__ KeyTile KeyTileOfBlock(const AttentionShape& shape,
                                                  const AttentionOptions& options) {
  const int all_heads = shape.batch * shape.kv_heads;
  const int batch = static_cast<int>(blockIdx.x) % all_heads / shape.kv_heads;
  const int kv_head = static_cast<int>(blockIdx.x) % shape.kv_heads;
  const int begin = static_cast<int>(blockIdx.x) / all_heads * kRows;
  const int present = Smaller(kRows, shape.positions - begin);
  KeyTile tile = {batch,
                  kv_head,
                  RowsOfHead(shape, batch, kv_head, shape.kv_stride),
                  begin,
                  present,
                  Larger(0, begin - shape.after + 1) / kColumns * kColumns,
                  Smaller(shape.positions, begin + present - 1 + shape.before),
                  {}};
  if constexpr (kOptions) {
    tile.sequence = SequenceOf(shape, options, batch);
    if (tile.sequence.segments != nullptr) {
      const int first = tile.sequence.segments[begin].begin;
      tile.query_begin = Larger(tile.query_begin, first / kColumns * kColumns);
      tile.query_end = Smaller(tile.query_end, tile.sequence.segments[begin + present - 1].end);
    }
    if (begin >= tile.sequence.length) tile.query_end = 0;
  }
  return tile;
}

// Whether all tensors can be read and written in packs.
template <typename T>
bool CanPackHeads(const AttentionShape& shape, std::initializer_list<const void*> tensors) {
  for (const void* tensor : tensors) {
    if (!CanPack<T>(tensor, shape.head_size)) return false;
  }
  return true;
}

// Calls f.template operator()<kHead>() for the tile of a head size.
template <typename F>
auto WithHeadTile(int head_size, F&& f) {
  if (head_size <= 64) return f.template operator()<64>();
  if (head_size <= 128) return f.template operator()<128>();
  return f.template operator()<256>();
}

inline int Tiles(int positions, int rows) { return (positions + rows - 1) / rows; }

}  // namespace ft::cuda
