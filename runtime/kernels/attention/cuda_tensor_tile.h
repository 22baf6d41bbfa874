// Tiles of attention in 16 bits: rows of heads in shared memory as they come, products of tiles on tensor
// cores, sums in registers in f32. A warp owns 16 kM rows of a product; where its lanes' sums lie says
// device_code/tensor_core.h. Rows in shared memory are 16 bytes longer than a head, so that the eight rows
// that are read at once lie in all banks.
#pragma once

#include "runtime/backends/cuda/device_code/reduce.h"
#include "runtime/backends/cuda/device_code/tensor_core.h"
#include "runtime/kernels/attention/cuda_heads.h"

namespace ft::cuda {

inline constexpr int kRowWarps = 4;  // side by side in the rows of a block

// Elements between rows in shared memory.
template <int kHead>
inline constexpr int kTensorStride = kHead + 8;

__device__ __forceinline__ int Lane() { return static_cast<int>(threadIdx.x) % kWarp; }
// Of the sums of this lane: sums[e] lies in row LaneRow() + 8 (e / 2), column LaneColumn() + e % 2.
__device__ __forceinline__ int LaneRow() { return Lane() / 4; }
__device__ __forceinline__ int LaneColumn() { return Lane() % 4 * 2; }
// The first row of this warp among those of its block.
template <int kM>
__device__ __forceinline__ int WarpRow() {
  return static_cast<int>(threadIdx.x) / kWarp % kRowWarps * (16 * kM);
}

// Over the four lanes that have sums of the same rows; all get the result.
template <typename Op>
__device__ __forceinline__ float QuadReduce(float value) {
  value = Op()(value, __shfl_xor_sync(kAllLanes, value, 1));
  return Op()(value, __shfl_xor_sync(kAllLanes, value, 2));
}

// Begins to fill to [kRows, kHead] with `present` rows of a head in `tensor`, of `size` elements, from row
// `first` on, and zeros elsewhere; FinishCopies and a barrier have to follow. `packed`: rows can be read in
// packs, and size is a multiple of one.
template <int kHead, int kRows, int kThreads, typename T>
__device__ __forceinline__ void FetchTile(const void* tensor, const HeadRows& rows, int first, int present,
                                          int size, bool packed, T* to) {
  const T* from = static_cast<const T*>(tensor) + RowOffset(rows, first);
  const int stride = rows.stride;
  constexpr int kStride = kTensorStride<kHead>, kWidth = 8, kPacks = kHead / kWidth;
  static_assert(kRows * kPacks % kThreads == 0);
  if (packed) {
#pragma unroll
    for (int i = static_cast<int>(threadIdx.x); i < kRows * kPacks; i += kThreads) {
      const int row = i / kPacks, column = i % kPacks * kWidth;
      const bool there = row < present && column < size;
      BeginCopy(to + row * kStride + column, there ? from + row * stride + column : from, there);
    }
    return;
  }
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < kRows * kHead; i += kThreads) {
    const int row = i / kHead, column = i % kHead;
    to[row * kStride + column] = row < present && column < size ? from[row * stride + column] : T{0};
  }
}

// Rows of this warp, columns from `column` on, to global memory.
template <typename T, int kM, int kN>
__device__ __forceinline__ void StoreSums(const float (&sums)[kM][kN][4], T* to, int stride, int present,
                                          int column, int size, bool packed) {
  column += LaneColumn();
#pragma unroll
  for (int i = 0; i < 2 * kM; ++i) {
    const int row = WarpRow<kM>() + LaneRow() + 8 * i;
    if (row >= present) continue;
    T* place = to + row * stride + column;
#pragma unroll
    for (int n = 0; n < kN; ++n) {
      const float* pair = &sums[i / 2][n][i % 2 * 2];
      if (packed) {
        if (column + 8 * n < size)
          *reinterpret_cast<uint32_t*>(place + 8 * n) = PackPair<T>(pair[0], pair[1]);
        continue;
      }
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        if (column + 8 * n + e < size) place[8 * n + e] = FromFloat<T>(pair[e]);
      }
    }
  }
}

template <int kM, int kN>
__device__ __forceinline__ void ClearSums(float (&sums)[kM][kN][4]) {
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int n = 0; n < kN; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) sums[m][n][e] = 0.0f;
    }
  }
}

template <int kM, int kN>
__device__ __forceinline__ void ScaleSums(float factor, float (&sums)[kM][kN][4]) {
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int n = 0; n < kN; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) sums[m][n][e] *= factor;
    }
  }
}

// sums = this warp's rows of a . the first 8 kN rows of b, over `depth` elements.
template <int kHead, typename T, int kM, int kN>
__device__ __forceinline__ void TensorRowProducts(const T* a, const T* b, int depth,
                                                  float (&sums)[kM][kN][4]) {
  static_assert(kN % 2 == 0);
  constexpr int kStride = kTensorStride<kHead>;
  ClearSums(sums);
  const int lane = Lane();
  a += (WarpRow<kM>() + lane % 16) * kStride + lane / 16 * 8;
  b += (lane % 8 + lane / 16 * 8) * kStride + lane / 8 % 2 * 8;
#pragma unroll 2
  for (int d = 0; d < depth; d += 16) {
    uint32_t left[kM][4];
#pragma unroll
    for (int m = 0; m < kM; ++m) LoadMatrices(a + m * 16 * kStride + d, left[m]);
#pragma unroll
    for (int n = 0; n < kN; n += 2) {
      uint32_t right[4];
      LoadMatrices(b + n * 8 * kStride + d, right);
#pragma unroll
      for (int m = 0; m < kM; ++m) {
        MultiplyAdd<T>(sums[m][n], left[m], right[0], right[1]);
        MultiplyAdd<T>(sums[m][n + 1], left[m], right[2], right[3]);
      }
    }
  }
}

// sums += weights x, of this warp's rows; weights [16 kM, 8 kK] as products leave them, rounded to T, x [8
// kK, *] from the column of sums[*][0] on. kPositive: without those that are negative.
template <int kHead, bool kPositive = false, typename T, int kM, int kK, int kN>
__device__ __forceinline__ void AddWeighted(const float (&weights)[kM][kK][4], const T* x,
                                            float (&sums)[kM][kN][4]) {
  static_assert(kK % 2 == 0 && kN % 2 == 0);
  constexpr int kStride = kTensorStride<kHead>;
  const int lane = Lane();
  x += lane % 16 * kStride + lane / 16 * 8;
#pragma unroll
  for (int k = 0; k < kK; k += 2) {
    uint32_t left[kM][4];
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int quarter = 0; quarter < 4; ++quarter) {
        const float* pair = &weights[m][k + quarter / 2][quarter % 2 * 2];
        left[m][quarter] = kPositive ? PackPair<T>(Max()(pair[0], 0.0f), Max()(pair[1], 0.0f))
                                     : PackPair<T>(pair[0], pair[1]);
      }
    }
#pragma unroll
    for (int n = 0; n < kN; n += 2) {
      uint32_t right[4];
      LoadTransposed(x + k * 8 * kStride + n * 8, right);
#pragma unroll
      for (int m = 0; m < kM; ++m) {
        MultiplyAdd<T>(sums[m][n], left[m], right[0], right[1]);
        MultiplyAdd<T>(sums[m][n + 1], left[m], right[2], right[3]);
      }
    }
  }
}

// The head size in whole steps of a product: rows in shared memory are zero beyond it.
__device__ __forceinline__ int TensorDepth(const AttentionShape& shape) {
  return (shape.head_size + 15) / 16 * 16;
}

// Whether each query of `count` from `query` on sees all keys of `keys` from `key` on. Kernels with options
// ask of each.
template <bool kOptions>
__device__ __forceinline__ bool SeesAll(const AttentionShape& shape, int query, int count, int key,
                                        int keys) {
  const int last_query = query + count - 1, last_key = key + keys - 1;
  return !kOptions && last_query < shape.positions && last_key < shape.positions &&
         key > last_query - shape.before && last_key - query < shape.after;
}

// Calls f.template operator()<T>() with the device type of a DType of 16 bits.
template <typename F>
int With16BitType(DType dtype, F&& f) {
  return dtype == DType::kBF16 ? f.template operator()<BF16>() : f.template operator()<F16>();
}

}  // namespace ft::cuda
