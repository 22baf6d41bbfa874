// Tiles of attention in f32: rows of heads in shared memory, products of tiles in registers. A block is 16 x
// 16 threads, a half-warp for each y. Thread (x, y) owns rows y + 16 i of a tile of scores, its columns x +
// 16 j, and of a tile of rows of heads the columns 64 g + 4 x ... 64 g + 4 x + 3.
#pragma once

#include "runtime/backends/cuda/device_code/reduce.h"
#include "runtime/kernels/attention/cuda_heads.h"

namespace ft::cuda {

inline constexpr int kSide = 16;
inline constexpr int kAttentionThreads = kSide * kSide;
inline constexpr int kSkew = 4;  // floats between rows: eight rows that are read at once lie in all 32 banks

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
template <int kHead, int kRows>
__device__ __forceinline__ void LoadTile(const float* from, int stride, int present, int size, bool packed,
                                         float* to) {
  constexpr int kStride = kHead + kSkew;
  if (packed) {
    constexpr int kWidth = 4, kPacks = kHead / kWidth;
#pragma unroll 1
    for (int i = static_cast<int>(threadIdx.x); i < kRows * kPacks; i += kAttentionThreads) {
      const int row = i / kPacks, column = i % kPacks * kWidth;
      Pack<float> pack = {};
      if (row < present && column < size) pack = LoadPack(from + row * stride + column);
      StorePack(to + row * kStride + column, pack);
    }
    return;
  }
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < kRows * kHead; i += kAttentionThreads) {
    const int row = i / kHead, column = i % kHead;
    to[row * kStride + column] = row < present && column < size ? from[row * stride + column] : 0.0f;
  }
}

// Two tensors alike.
template <int kHead, int kRows>
__device__ __forceinline__ void LoadTiles(const void* a, const void* b, int64_t offset, int stride,
                                          int present, int size, bool packed, float* to_a, float* to_b) {
  LoadTile<kHead, kRows>(static_cast<const float*>(a) + offset, stride, present, size, packed, to_a);
  LoadTile<kHead, kRows>(static_cast<const float*>(b) + offset, stride, present, size, packed, to_b);
}

// The reverse, from registers: row y + 16 i, the columns of this thread.
template <int kHead, int kI>
__device__ __forceinline__ void StoreRows(const float (&sums)[kI][kHead / kSide], float* to, int stride,
                                          int present, int size, bool packed) {
#pragma unroll
  for (int i = 0; i < kI; ++i) {
    const int row = ThreadY() + kSide * i;
    if (row >= present) continue;
#pragma unroll
    for (int c = 0; c < kHead / kSide; c += 4) {
      const int column = 16 * c + 4 * ThreadX();
      float* place = to + row * stride + column;
      if (packed && column < size) {
        Pack<float> four;
#pragma unroll
        for (int e = 0; e < 4; ++e) four.at[e] = sums[i][c + e];
        StorePack(place, four);
      }
      if (packed) continue;
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        if (column + e < size) place[e] = sums[i][c + e];
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

// values[i][j], of query `query` + y + 16 i and key `key` + x + 16 j, by their factors.
template <int kI, int kJ>
__device__ __forceinline__ void DropTile(const AttentionShape& shape, const AttentionOptions& options,
                                         int row, int query, int key, float (&values)[kI][kJ]) {
  const uint32_t kept = KeptOfTile<true, kI * kJ>(shape, options, row, [=](int n) {
    return QueryAndKey{query + ThreadY() + kSide * (n / kJ), key + ThreadX() + kSide * (n % kJ)};
  });
#pragma unroll
  for (int i = 0; i < kI; ++i) {
#pragma unroll
    for (int j = 0; j < kJ; ++j)
      values[i][j] = kept >> (i * kJ + j) & 1u ? values[i][j] * options.factor : 0.0f;
  }
}

// The head size in whole packs of 4 floats: rows in shared memory are zero beyond it.
__device__ __forceinline__ int Depth(const AttentionShape& shape) { return (shape.head_size + 3) / 4 * 4; }

}  // namespace ft::cuda
