// Tiles of attention and their products, in a thread's scratch. Included only by loops.
//
// Tiles are padded, so that products need no edges: rows by kPadRows, which are computed and never read,
// columns to whole panels of kTileColumns.
#pragma once

#include <cstdint>
#include <type_traits>

#include "runtime/backends/cpu/simd/philox.h"
#include "runtime/backends/cpu/simd/transpose.h"
#include "runtime/backends/cpu/simd/vector_math.h"
#include "runtime/kernels/attention/cpu_loops.h"
#if FT_AMX
#include "runtime/backends/cpu/simd/amx.h"
#endif

namespace ft::cpu::FT_ISA {

// f32 and f16 are multiplied in f32; so is bf16 where there is nothing better.
#if FT_AMX
template <typename T>
using UnitsOf = std::conditional_t<std::is_same_v<T, BFloat16>, AmxUnits, F32Units>;
#elif FT_BF16_DOT
template <typename T>
using UnitsOf = std::conditional_t<std::is_same_v<T, BFloat16>, Bf16Units, F32Units>;
#else
template <typename T>
using UnitsOf = F32Units;
#endif

inline constexpr int64_t kPadRows = 16;
static_assert(kTileRows <= kPadRows && kAttentionTile % kTileColumns == 0);
#if FT_AMX
static_assert(AmxUnits::kSmallRows <= kPadRows && AmxUnits::kRows - AmxUnits::kSmallRows <= kPadRows);
#endif

template <typename Units>
FT_INLINE int64_t UnitCount(int64_t elements) {
  return (elements + Units::kElements - 1) / Units::kElements;
}

// With what products pad them.
template <typename Units>
FT_INLINE int64_t PaddedUnits(int64_t elements) {
  return RoundUp(elements, Units::kStep) / Units::kElements;
}

// Columns of tiles that hold elements of a head, and between rows of tiles that hold units of it.
FT_INLINE int64_t HeadColumns(int64_t head_size) { return RoundUp(head_size, kTileColumns); }
FT_INLINE int64_t HeadStride(int64_t units) { return units <= 64 ? 64 : (units <= 128 ? 128 : 256); }

// Hands out pieces of a thread's scratch, each a multiple of 64 bytes.
class Scratch {
 public:
  explicit inline __attribute__((always_inline)) Scratch(void* data) : next_(static_cast<float*>(data)) {}

  inline __attribute__((always_inline)) float* Take(int64_t n) {
    float* piece = next_;
    next_ += RoundUp(n, 16);
    return piece;
  }

 private:
  float* next_;
};

// to[i * ld + u] = unit u of row i.
template <typename Units, typename T>
FT_INLINE void PackAlong(const T* from, int64_t ldf, int64_t rows, int64_t n, float* to, int64_t ld) {
  constexpr int64_t kStep = kLanes * Units::kElements;
  for (int64_t i = 0; i < rows; ++i, from += ldf, to += ld) {
    for (int64_t u = 0; u * Units::kElements < n; u += kLanes) {
      StoreVector(to + u,
                  Units::Along(from + u * Units::kElements, Smaller(n - u * Units::kElements, kStep)));
    }
  }
}

// `width` columns of units behind those of `elements` elements that products read are zero.
template <typename Units>
FT_INLINE void PadUnits(int64_t elements, int64_t width, float* to, int64_t ld) {
  for (int64_t u = UnitCount<Units>(elements); u < PaddedUnits<Units>(elements); ++u) {
    for (int64_t j = 0; j < width; j += kLanes) StoreVector(to + u * ld + j, Vector{});
  }
}

// to[u * ld + j] = unit u of column j; columns to the next multiple of kLanes behind n + kPadRows are zero.
template <typename Units, typename T>
FT_INLINE void PackAcross(const T* from, int64_t ldf, int64_t rows, int64_t n, float* to, int64_t ld) {
  const int64_t width = Smaller(ld, RoundUp(n + kPadRows, kLanes));
  for (int64_t i = 0; i < rows; i += Units::kElements) {
    float* at = to + i / Units::kElements * ld;
    int64_t j = 0;
    for (; j < n; j += kLanes) StoreVector(at + j, Units::Across(from + i * ldf + j, ldf, rows - i, n - j));
    for (; j < width; j += kLanes) StoreVector(at + j, Vector{});
  }
  PadUnits<Units>(rows, width, to, ld);
}

// to[u * ld + i] = unit u of row i, zero beyond `rows` to the next multiple of kTileColumns.
template <typename Units, typename T>
FT_INLINE void PackTransposed(const T* from, int64_t ldf, int64_t rows, int64_t n, float* to, int64_t ld) {
  for (int64_t u = 0; u * Units::kElements < n; u += kLanes) {
    for (int64_t i = 0; i < RoundUp(rows, kTileColumns); i += kLanes) {
      // Where no rows are left none is read.
      const T* block = from + (i < rows ? i : 0) * ldf + u * Units::kElements;
      TransposeBlock<Units>(block, ldf, rows - i, to + u * ld + i, ld, n - u * Units::kElements);
    }
  }
  PadUnits<Units>(n, RoundUp(rows, kTileColumns), to, ld);
}

// How the left operand of a product lies: element (i, k) at data[i * kStride + k], or, with kStride 0, at
// data[k * ld + i].
template <int kStride>
struct Left {
  const float* data;
  int64_t ld;

  FT_INLINE int64_t Offset(int64_t i, int64_t k, int64_t ld) {
    return kStride == 0 ? k * ld + i : i * kStride + k;
  }
  inline __attribute__((always_inline)) Left At(int64_t i, int64_t k) const {
    return {data + Offset(i, k, ld), ld};
  }
};

// A left operand that is summed over the rows of a tile in memory, at most kAttentionTile of them.
template <typename Units>
using LeftAcross = Left<Units::kTiles ? kAttentionTile / Units::kElements : 0>;

// See PackAcross; where products are made in tiles the units of a column lie side by side.
template <typename Units, typename T>
FT_INLINE void PackLeft(const T* from, int64_t ldf, int64_t rows, int64_t n, float* to, int64_t ld) {
  if constexpr (!Units::kTiles) {
    PackAcross<Units>(from, ldf, rows, n, to, ld);
  } else {
    for (int64_t u = 0; u < PaddedUnits<Units>(rows); u += kLanes) {
      for (int64_t i = 0; i < n; i += kLanes) {
        Vector block[kLanes] = {};
        for (int64_t j = 0; j < kLanes && (u + j) * Units::kElements < rows; ++j) {
          const int64_t row = (u + j) * Units::kElements;
          block[j] = Units::Across(from + row * ldf + i, ldf, rows - row, n - i);
        }
        TransposeVectors(block);
#pragma GCC unroll 16
        for (int j = 0; j < kLanes; ++j) StoreVector(to + LeftAcross<Units>::Offset(i + j, u, 0), block[j]);
      }
    }
  }
}

// c [kRows, kTileColumns] = or += a b over `depth` units.
template <typename Units, int kRows, int kStride>
void MultiplyTile(int64_t depth, Left<kStride> a, const float* b, int64_t ldb, float* c, int64_t ldc,
                  bool accumulate) {
  Vector sums[kRows][kTileVectors];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    sums[i][0] = accumulate ? LoadVector(c + i * ldc) : Vector{};
    sums[i][1] = accumulate ? LoadVector(c + i * ldc + kLanes) : Vector{};
  }
  const float* data = a.data;
  const int64_t ld = a.ld;
  const auto element = [data, ld](int64_t i, int64_t k)
                           __attribute__((always_inline)) { return data[Left<kStride>::Offset(i, k, ld)]; };
  AddProducts<Units, kRows, kTileVectors>(depth, element, b, ldb, sums);
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    StoreVector(c + i * ldc, sums[i][0]);
    StoreVector(c + i * ldc + kLanes, sums[i][1]);
  }
}

// What makes `kRows` rows of a product of some units.
template <typename Units, int kRows, int kStride>
inline constexpr auto kMultiply = MultiplyTile<Units, kRows, kStride>;

#if FT_AMX
// In the registers of AMX, for 32 rows, or 16.
template <bool kHalf, int kStride>
void MultiplyTiles(int64_t depth, Left<kStride> a, const float* b, int64_t ldb, float* c, int64_t ldc,
                   bool accumulate) {
  static_assert(kStride > 0);
  accumulate ? LoadTileSums<kHalf>(c, ldc) : ZeroTileSums<kHalf>();
  for (int64_t k = 0; k < depth; k += kAmxSide) {
    AddTiles<kHalf>(a.data + k, a.data + kAmxSide * kStride + k, kStride, b + k * ldb, ldb);
  }
  StoreTileSums<kHalf>(c, ldc);
}

template <int kRows, int kStride>
inline constexpr auto kMultiply<AmxUnits, kRows, kStride> = MultiplyTiles<kRows == kAmxSide, kStride>;
#endif

// What of a product is wanted for rows begin ... end - 1 of a tile: units of the sums, columns of the result.
struct Extent {
  int64_t depth_begin, depth_end, columns;
};

// c [rows, columns] = or += a b. `extent_of(begin, end)` gives the extent of rows that are made together.
template <typename Units, int kStride, typename ExtentOf>
FT_INLINE void TileProduct(int64_t rows, Left<kStride> a, const float* b, int64_t ldb, float* c, int64_t ldc,
                           bool accumulate, const ExtentOf& extent_of) {
  for (int64_t row = 0; row < rows;) {
    const bool small = rows - row <= Units::kSmallRows;
    const int64_t height = small ? Units::kSmallRows : Units::kRows;
    const Extent extent = extent_of(row, Smaller(rows, row + height));
    const Left<kStride> left = a.At(row, extent.depth_begin);
    const int64_t depth = extent.depth_end - extent.depth_begin;
    for (int64_t column = 0; column < extent.columns; column += kTileColumns) {
      const auto multiply =
          small ? kMultiply<Units, Units::kSmallRows, kStride> : kMultiply<Units, Units::kRows, kStride>;
      multiply(depth, left, b + extent.depth_begin * ldb + column, ldb, c + row * ldc + column, ldc,
               accumulate);
    }
    row += height;
  }
}

// The same for the whole of it.
template <typename Units, int kStride>
FT_INLINE void TileProduct(int64_t rows, int64_t columns, int64_t depth, Left<kStride> a, const float* b,
                           int64_t ldb, float* c, int64_t ldc, bool accumulate) {
  TileProduct<Units>(rows, a, b, ldb, c, ldc, accumulate,
                     [=](int64_t, int64_t)
                         __attribute__((always_inline)) { return Extent{0, depth, columns}; });
}

// With rows of units of a head on the left, whose stride the compiler must know: f(std::integral_constant).
template <typename F>
FT_INLINE void WithHeadStride(int64_t stride, const F& f) {
  if (stride == 64) return f(std::integral_constant<int, 64>());
  if (stride == 128) return f(std::integral_constant<int, 128>());
  f(std::integral_constant<int, 256>());
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

// What is said of the keys of one sequence.
struct Sequence {
  int64_t length;                 // keys behind it do not count
  const SegmentBounds* segments;  // [positions]; nullptr: one segment
};
FT_INLINE Sequence SequenceOf(const AttentionArgs& f, int64_t batch) {
  return {f.lengths == nullptr ? f.positions : Smaller(Larger(f.lengths[batch], 0), f.positions),
          f.segments == nullptr ? nullptr : f.segments + batch * f.positions};
}

// The keys from `first` up to `end`, which is not one of them, that some of `queries` consecutive queries
// see: none where it is not behind `first`, which may be negative.
struct KeyRange {
  int64_t first, end;
};
FT_INLINE KeyRange KeysSeen(const AttentionArgs& f, const Sequence& s, int64_t query, int64_t queries) {
  KeyRange seen = {query - f.span.before + 1, Smaller(s.length, query + queries - 1 + f.span.after)};
  if (s.segments != nullptr) {
    const int64_t last = Smaller(query + queries, f.positions) - 1;
    seen = {Larger(seen.first, s.segments[query].begin), Smaller(seen.end, s.segments[last].end)};
  }
  return seen;
}

// The factors of kAttentionTile probabilities, from an element on: 0, or that of what is kept.
FT_INLINE void DrawFactors(const DropoutArgs& args, uint64_t element, float* factors) {
  constexpr int kBlocks = kAttentionTile / 4;
  uint32_t words[2][4][kBlocks], drawn[8 * kBlocks];
  const int64_t skipped = static_cast<int64_t>(element % 4);
  PhiloxBlocks<kBlocks>(args, element / 4, words[0]);
  if (skipped != 0) PhiloxBlocks<kBlocks>(args, element / 4 + kBlocks, words[1]);
  for (int i = 0; i < 4 * kBlocks; ++i) drawn[i] = words[0][i % 4][i / 4];
  if (skipped != 0) {
    for (int i = 0; i < 4; ++i) drawn[4 * kBlocks + i] = words[1][i][0];
  }
  const uint32_t* word = drawn + skipped;
#pragma omp simd
  for (int i = 0; i < kAttentionTile; ++i) factors[i] = word[i] >> 8 >= args.threshold ? args.factor : 0.0f;
}

// Scores are outer * tanh(inner * product) where they are capped, and outer * product where they are not.
struct ScoreFactors {
  float inner, outer;
  bool capped;
};
FT_INLINE ScoreFactors FactorsOf(const AttentionArgs& f) {
  if (f.softcap > 0.0f) return {f.scale / f.softcap, f.softcap, true};
  return {1.0f, f.scale, false};
}

// Products become those that `outer` is a factor of.
FT_INLINE void CapScores(float inner, int64_t n, float* scores) {
  for (int64_t i = 0; i < n; ++i) scores[i] = Tanh(scores[i] * inner);
}

FT_INLINE Vector LaneNumbers() {
  Vector lanes;
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) lanes[i] = static_cast<float>(i);
  return lanes;
}

inline constexpr float kLog2E = 1.44269504088896340736f;
inline constexpr float kLn2 = 0.69314718055994530942f;

}  // namespace ft::cpu::FT_ISA
