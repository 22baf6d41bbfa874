#include <cmath>

#include "runtime/backends/cuda/device_code/element.h"
#include "runtime/backends/cuda/device_code/reduce.h"
#include "runtime/kernels/binary_mapper/cuda_device.h"

namespace ft::cuda {
namespace {

// A warp has a row. Inside a block of codes, bits 0 and 1 are the place in a pack of four, bits 2 ... 6 the
// lane, bits 7 ... 11 the pack of the lane: what is summed for a bit needs a product or two per code. Bits
// that a smaller code has not are never set.
constexpr int kPackBits = 2, kLaneBits = 5, kHighBits = kCodeBlockBits - kPackBits - kLaneBits;
constexpr int kPackCodes = 1 << kPackBits;
constexpr int kRowsOfBlock = 8;
constexpr int kLatentInFlight = 8;  // packs that are under way at once

// sigmoid(l) and sigmoid(-l) of bit `lane`; 0 and 1 for bits there are not.
struct BitChance {
  float set, clear;
};

template <typename T>
__device__ __forceinline__ BitChance LaneChance(const T* logits, int bits, int lane) {
  if (lane >= bits) return {0.0f, 1.0f};
  const float l = ToFloat(logits[lane]);
  return {1.0f / (1.0f + expf(-l)), 1.0f / (1.0f + expf(l))};
}

// The probability that bits [from, from + count) are those of `value`. All lanes take part.
template <int kCount>
__device__ __forceinline__ float Chance(const BitChance& mine, int from, uint32_t value) {
  float product = 1.0f;
#pragma unroll
  for (int h = 0; h < kCount; ++h) {
    const float set = __shfl_sync(kAllLanes, mine.set, from + h);
    const float clear = __shfl_sync(kAllLanes, mine.clear, from + h);
    product *= (value >> h & 1) != 0 ? set : clear;
  }
  return product;
}

// Products of code `first` ... first + 3 of a row; zero for codes there are not.
__device__ __forceinline__ Pack<float> ReadCodes(const float* g, int codes, int first) {
  Pack<float> pack = {};
  if (codes >= kPackCodes) {
    if (first < codes) pack = LoadPack(g + first);
    return pack;
  }
#pragma unroll
  for (int j = 0; j < kPackCodes; ++j) {
    if (first + j < codes) pack.at[j] = g[first + j];
  }
  return pack;
}

// What a lane sums over its packs.
struct LaneSums {
  float at[kPackCodes] = {};   // over all packs: g times the probability of the high bits
  float with[kHighBits] = {};  // over those that have the high bit: the same, times that of bits 0 and 1
};

__device__ __forceinline__ LaneSums SumPacks(const float* g, int codes, const float (&low)[kPackCodes],
                                             float high_chance, int lane) {
  LaneSums sums;
  const int packs = (codes + kPackCodes * kWarp - 1) / (kPackCodes * kWarp);
  for (int begin = 0; begin < packs; begin += kLatentInFlight) {
    Pack<float> held[kLatentInFlight];
#pragma unroll
    for (int i = 0; i < kLatentInFlight; ++i) {
      held[i] = ReadCodes(g, codes, ((begin + i) * kWarp + lane) * kPackCodes);
    }
#pragma unroll
    for (int i = 0; i < kLatentInFlight; ++i) {
      const float chance = __shfl_sync(kAllLanes, high_chance, begin + i);
      float dot = 0.0f;
#pragma unroll
      for (int j = 0; j < kPackCodes; ++j) {
        dot = fmaf(held[i].at[j], low[j], dot);
        sums.at[j] = fmaf(held[i].at[j], chance, sums.at[j]);
      }
#pragma unroll
      for (int h = 0; h < kHighBits; ++h) {
        if (((begin + i) >> h & 1) != 0) sums.with[h] = fmaf(dot, chance, sums.with[h]);
      }
    }
  }
  return sums;
}

// For lane h < 12, the sum over the block's codes with bit h, all lanes; `total` that over all codes.
__device__ __forceinline__ float SumOfBit(const LaneSums& sums, const float (&low)[kPackCodes],
                                          float lane_chance, int lane, float& total) {
  float with_bit[kCodeBlockBits] = {}, all = 0.0f;
#pragma unroll
  for (int j = 0; j < kPackCodes; ++j) {
    const float share = sums.at[j] * low[j] * lane_chance;
    all += share;
#pragma unroll
    for (int h = 0; h < kPackBits; ++h) with_bit[h] += (j >> h & 1) != 0 ? share : 0.0f;
  }
#pragma unroll
  for (int h = 0; h < kLaneBits; ++h) with_bit[kPackBits + h] = (lane >> h & 1) != 0 ? all : 0.0f;
#pragma unroll
  for (int h = 0; h < kHighBits; ++h) with_bit[kPackBits + kLaneBits + h] = sums.with[h] * lane_chance;
  total = WarpReduce<Sum>(all);
  float mine = 0.0f;
#pragma unroll
  for (int h = 0; h < kCodeBlockBits; ++h) {
    const float sum = WarpReduce<Sum>(with_bit[h]);
    if (lane == h) mine = sum;
  }
  return mine;
}

template <typename T>
__global__ void __launch_bounds__(kRowsOfBlock* kWarp) CodeBlockKernel(CodeBlockArgs args) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kRowsOfBlock + threadIdx.x / kWarp;
  if (row >= args.rows) return;  // whole warps
  const int inner = args.bits < kCodeBlockBits ? args.bits : kCodeBlockBits, codes = 1 << inner;
  const BitChance mine = LaneChance(static_cast<const T*>(args.logits) + row * args.bits, args.bits, lane);
  const float lane_chance = Chance<kLaneBits>(mine, kPackBits, lane);
  const float high_chance = Chance<kHighBits>(mine, kPackBits + kLaneBits, lane);  // of pack `lane`
  const float block_chance =
      Chance<kMaxCodeBits - kCodeBlockBits>(mine, kCodeBlockBits, static_cast<uint32_t>(args.block));
  float low[kPackCodes];
#pragma unroll
  for (int j = 0; j < kPackCodes; ++j) low[j] = Chance<kPackBits>(mine, 0, j);
  const LaneSums sums = SumPacks(args.g + row * codes, codes, low, high_chance, lane);
  float total;
  float with_bit = SumOfBit(sums, low, lane_chance, lane, total);
  if (lane >= args.bits) return;
  if (lane >= kCodeBlockBits) with_bit = (args.block >> (lane - kCodeBlockBits) & 1) != 0 ? total : 0.0f;
  float share = block_chance * (with_bit - mine.set * total);
  const int64_t at = row * args.bits + lane;
  if (args.block != 0) share += args.sums[at];
  if (args.block + 1 == int64_t{1} << (args.bits - inner)) {
    static_cast<T*>(args.dlogits)[at] = FromFloat<T>(share);
  } else {
    args.sums[at] = share;
  }
}

}  // namespace

int AddCodeBlock(const CodeBlockArgs& args, DType dtype, StreamHandle stream) {
  if (args.rows == 0) return 0;
  const int64_t blocks = (args.rows + kRowsOfBlock - 1) / kRowsOfBlock;
  const LaunchShape shape = {.grid_x = static_cast<unsigned>(blocks), .block_x = kRowsOfBlock * kWarp};
  return WithFloatType(dtype, [&]<typename T>() { return Launch(CodeBlockKernel<T>, shape, stream, args); });
}

}  // namespace ft::cuda
