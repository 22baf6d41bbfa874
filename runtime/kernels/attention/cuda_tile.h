// Tiles of attention: rows of heads in shared memory as f32, products of tiles in registers. A block is 16 x
// 16 threads, a half-warp for each y. Thread (x, y) owns rows y + 16 i of a tile of scores, its columns x +
// 16 j, and of a tile of rows of heads the columns 64 g + 4 x ... 64 g + 4 x + 3.
#pragma once

#include "runtime/backends/cuda/device_code/element.h"
#include "runtime/backends/cuda/device_code/philox.h"
#include "runtime/backends/cuda/device_code/reduce.h"
#include "runtime/kernels/attention/cuda_device.h"

namespace ft::cuda {

inline constexpr int kSide = 16;
inline constexpr int kAttentionThreads = kSide * kSide;
inline constexpr int kSkew = 4;  // floats between rows: eight rows that are read at once lie in all 32 banks
inline constexpr float kLog2E = 1.44269504088896341f, kLn2 = 0.693147180559945309f;

// kHead is the head size rounded up to 64, 128 or 256. A tile has kRows rows that stay in the block (queries,
// or keys for their gradients) and kColumns that pass by; kColumns divides kRows.
template <int kHead>
struct AttentionTile {
  static constexpr int kRows = kHead <= 128 ? 64 : 32;
  static constexpr int kColumns = kHead <= 64 ? 64 : 32;
  static constexpr int kStride = kHead + kSkew;           // floats between rows of heads
  static constexpr int kWeightStride = kColumns + kSkew;  // floats between rows of scores
  static constexpr int kI = kRows / kSide, kJ = kColumns / kSide, kC = kHead / kSide;  // of a thread
  static constexpr int kWeightFloats = kRows * kWeightStride;
};

__device__ __forceinline__ int ThreadX() { return static_cast<int>(threadIdx.x) % kSide; }
__device__ __forceinline__ int ThreadY() { return static_cast<int>(threadIdx.x) / kSide; }

// Over the 16 threads of one y; all get the result.
template <typename Op>
__device__ __forceinline__ float HalfWarpReduce(float value) {
  for (int offset = kSide / 2; offset > 0; offset /= 2)
    value = Op()(value, __shfl_xor_sync(kAllLanes, value, offset));
  return value;
}

// to [kRows, kHead] = the first `present` rows of from [*, size], `stride` elements apart, zero elsewhere.
// `packed`: rows can be read in packs, and size is a multiple of a pack.
template <typename T, int kHead, int kRows>
__device__ __forceinline__ void LoadTile(const T* from, int stride, int present, int size, bool packed,
                                         float* to) {
  constexpr int kStride = kHead + kSkew;
  if (packed) {
    constexpr int kWidth = 16 / sizeof(T), kPacks = kHead / kWidth;
#pragma unroll(sizeof(T) == 2 ? 2 : 1)
    for (int i = static_cast<int>(threadIdx.x); i < kRows * kPacks; i += kAttentionThreads) {
      const int row = i / kPacks, column = i % kPacks * kWidth;
      Pack<T> pack = {};
      if (row < present && column < size) pack = LoadPack(from + row * stride + column);
#pragma unroll
      for (int part = 0; part < kWidth; part += 4) {
        Pack<float> four;
#pragma unroll
        for (int e = 0; e < 4; ++e) four.at[e] = ToFloat(pack.at[part + e]);
        StorePack(to + row * kStride + column + part, four);
      }
    }
    return;
  }
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < kRows * kHead; i += kAttentionThreads) {
    const int row = i / kHead, column = i % kHead;
    to[row * kStride + column] = row < present && column < size ? ToFloat(from[row * stride + column]) : 0.0f;
  }
}

// Two tensors alike.
template <typename T, int kHead, int kRows>
__device__ __forceinline__ void LoadTiles(const void* a, const void* b, int64_t offset, int stride,
                                          int present, int size, bool packed, float* to_a, float* to_b) {
  LoadTile<T, kHead, kRows>(static_cast<const T*>(a) + offset, stride, present, size, packed, to_a);
  LoadTile<T, kHead, kRows>(static_cast<const T*>(b) + offset, stride, present, size, packed, to_b);
}

// The reverse, from registers: row y + 16 i, the columns of this thread.
template <typename T, int kHead, int kI>
__device__ __forceinline__ void StoreRows(const float (&sums)[kI][kHead / kSide], T* to, int stride,
                                          int present, int size, bool packed) {
#pragma unroll
  for (int i = 0; i < kI; ++i) {
    const int row = ThreadY() + kSide * i;
    if (row >= present) continue;
#pragma unroll
    for (int c = 0; c < kHead / kSide; c += 4) {
      const int column = 16 * c + 4 * ThreadX();
      T* place = to + row * stride + column;
      if (packed && column < size) {
        Pack<T, 4> four;
#pragma unroll
        for (int e = 0; e < 4; ++e) four.at[e] = FromFloat<T>(sums[i][c + e]);
        *reinterpret_cast<Pack<T, 4>*>(place) = four;
      }
      if (packed) continue;
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        if (column + e < size) place[e] = FromFloat<T>(sums[i][c + e]);
      }
    }
  }
}

// sums[i][j] = row y + 16 i of a . row x + 16 j of b, over `depth` elements, a multiple of 4.
template <int kStride, int kI, int kJ>
__device__ __forceinline__ void RowProducts(const float* a, const float* b, int depth,
                                            float (&sums)[kI][kJ]) {
#pragma unroll
  for (int i = 0; i < kI; ++i) {
#pragma unroll
    for (int j = 0; j < kJ; ++j) sums[i][j] = 0.0f;
  }
  a += ThreadY() * kStride;
  b += ThreadX() * kStride;
#pragma unroll 1
  for (int d = 0; d < depth; d += 4) {
    Pack<float> left[kI], right[kJ];
#pragma unroll
    for (int i = 0; i < kI; ++i) left[i] = LoadPack(a + kSide * kStride * i + d);
#pragma unroll
    for (int j = 0; j < kJ; ++j) right[j] = LoadPack(b + kSide * kStride * j + d);
#pragma unroll
    for (int e = 0; e < 4; ++e) {
#pragma unroll
      for (int i = 0; i < kI; ++i) {
#pragma unroll
        for (int j = 0; j < kJ; ++j) sums[i][j] = __fmaf_rn(left[i].at[e], right[j].at[e], sums[i][j]);
      }
    }
  }
}

// sums[i] += weights[y + 16 i, :] x, in the columns of this thread; weights [*, kColumns], x [kColumns,
// kHead]. kPositive: without those that are negative.
template <int kHead, int kColumns, bool kPositive = false, int kI>
__device__ __forceinline__ void AddWeightedRows(const float* weights, const float* x,
                                                float (&sums)[kI][kHead / kSide]) {
  weights += ThreadY() * (kColumns + kSkew);
  x += 4 * ThreadX();
#pragma unroll 1
  for (int k = 0; k < kColumns; k += 4) {
    Pack<float> left[kI];
#pragma unroll
    for (int i = 0; i < kI; ++i) {
      left[i] = LoadPack(weights + kSide * (kColumns + kSkew) * i + k);
#pragma unroll
      for (int e = 0; kPositive && e < 4; ++e) left[i].at[e] = Max()(left[i].at[e], 0.0f);
    }
#pragma unroll
    for (int e = 0; e < 4; ++e) {
#pragma unroll
      for (int g = 0; g < kHead / 64; ++g) {
        const Pack<float> right = LoadPack(x + (k + e) * (kHead + kSkew) + 64 * g);
#pragma unroll
        for (int i = 0; i < kI; ++i) {
#pragma unroll
          for (int c = 0; c < 4; ++c)
            sums[i][4 * g + c] = __fmaf_rn(left[i].at[e], right.at[c], sums[i][4 * g + c]);
        }
      }
    }
  }
}

template <int kI, int kC>
__device__ __forceinline__ void Clear(float (&sums)[kI][kC]) {
#pragma unroll
  for (int i = 0; i < kI; ++i) {
#pragma unroll
    for (int c = 0; c < kC; ++c) sums[i][c] = 0.0f;
  }
}

// weights[y + 16 i, x + 16 j] = values[i][j]. Only the half-warp of a row reads it: __syncwarp is enough.
template <int kColumns, int kI, int kJ>
__device__ __forceinline__ void StoreWeights(const float (&values)[kI][kJ], float* weights) {
#pragma unroll
  for (int i = 0; i < kI; ++i) {
#pragma unroll
    for (int j = 0; j < kJ; ++j)
      weights[(ThreadY() + kSide * i) * (kColumns + kSkew) + ThreadX() + kSide * j] = values[i][j];
  }
}

// sums += values x, by way of `weights` in shared memory; x [kColumns, kHead]. kPositive: see above.
template <int kHead, int kColumns, bool kPositive = false, int kI, int kJ, int kC>
__device__ __forceinline__ void AddThrough(float* weights, const float (&values)[kI][kJ], const float* x,
                                           float (&sums)[kI][kC]) {
  StoreWeights<kColumns>(values, weights);
  __syncwarp();
  AddWeightedRows<kHead, kColumns, kPositive>(weights, x, sums);
  __syncwarp();  // the weights may be written again
}

__device__ __forceinline__ int Smaller(int a, int b) { return a < b ? a : b; }
__device__ __forceinline__ int Larger(int a, int b) { return a > b ? a : b; }

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
// the head's first query in [batch, heads, positions].
template <int kCount, typename At>
__device__ __forceinline__ uint32_t KeptOfTile(const AttentionShape& shape, const AttentionOptions& options,
                                               int row, const At& at) {
  static_assert(kCount <= 32);
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
// values[i][j], of query `query` + y + 16 i and key `key` + x + 16 j, by their factors.
template <int kI, int kJ>
__device__ __forceinline__ void DropTile(const AttentionShape& shape, const AttentionOptions& options,
                                         int row, int query, int key, float (&values)[kI][kJ]) {
  const uint32_t kept = KeptOfTile<kI * kJ>(shape, options, row, [=](int n) {
    return QueryAndKey{query + ThreadY() + kSide * (n / kJ), key + ThreadX() + kSide * (n % kJ)};
  });
#pragma unroll
  for (int i = 0; i < kI; ++i) {
#pragma unroll
    for (int j = 0; j < kJ; ++j)
      values[i][j] = kept >> (i * kJ + j) & 1u ? values[i][j] * options.factor : 0.0f;
  }
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

// The head size in whole packs of 4 floats: rows in shared memory are zero beyond it.
__device__ __forceinline__ int Depth(const AttentionShape& shape) { return (shape.head_size + 3) / 4 * 4; }

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
