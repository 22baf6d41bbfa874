#include <cmath>

#include "runtime/backends/cuda/device_code/element.h"
#include "runtime/backends/cuda/device_code/trigonometry.h"
#include "runtime/kernels/rope/cuda_device.h"

namespace ft::cuda {
namespace {

constexpr int kRopeThreads = 256;

// Turns are counted in f64: at position 2^17 the rest of a turn is still good to 2^-36, and what follows is
// f32 on a small angle.
__device__ __forceinline__ CosSin Rotation(double quarter_turns, bool inverse) {
  const double whole = rint(quarter_turns);
  const uint32_t quarter = static_cast<uint32_t>(static_cast<int64_t>(whole)) & 3;
  CosSin rotation = OfQuarterTurns(quarter, static_cast<float>(quarter_turns - whole));
  if (inverse) rotation.sine = -rotation.sine;
  return rotation;
}

// A thread has kWidth consecutive pairs of one head at one position, in up to kRopeSequences sequences.
template <typename T, int kWidth>
__global__ void __launch_bounds__(kRopeThreads) RopeKernel(RopeArgs args) {
  const uint32_t groups = static_cast<uint32_t>(args.count) / kWidth,
                 heads = static_cast<uint32_t>(args.heads);
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * kRopeThreads + threadIdx.x;
  const int64_t position = thread / (heads * groups);
  if (position >= args.positions) return;
  const uint32_t in_row = static_cast<uint32_t>(thread - position * (heads * groups));
  const uint32_t head = in_row / groups, pair = (in_row - head * groups) * kWidth;
  CosSin rotation[kWidth];
#pragma unroll
  for (int j = 0; j < kWidth; ++j) {
    rotation[j] = Rotation(static_cast<double>(position) * args.quarter_turns[pair + j], args.inverse);
  }
  const int64_t row = args.heads * 2 * args.half;
  const int64_t in_sequence = position * row + head * 2 * args.half + args.first + pair;
  const int64_t begin = static_cast<int64_t>(blockIdx.y) * kRopeSequences;
  const int64_t end = begin + kRopeSequences < args.batch ? begin + kRopeSequences : args.batch;
#pragma unroll 2
  for (int64_t b = begin; b < end; ++b) {
    const int64_t at = b * args.positions * row + in_sequence;
    const T* x = static_cast<const T*>(args.x) + at;
    T* r = static_cast<T*>(args.r) + at;
    Pack<T, kWidth> low = *reinterpret_cast<const Pack<T, kWidth>*>(x);
    Pack<T, kWidth> high = *reinterpret_cast<const Pack<T, kWidth>*>(x + args.half);
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
      const float l = ToFloat(low.at[j]), h = ToFloat(high.at[j]);
      low.at[j] = FromFloat<T>(fmaf(l, rotation[j].cosine, -(h * rotation[j].sine)));
      high.at[j] = FromFloat<T>(fmaf(h, rotation[j].cosine, l * rotation[j].sine));
    }
    *reinterpret_cast<Pack<T, kWidth>*>(r) = low;
    *reinterpret_cast<Pack<T, kWidth>*>(r + args.half) = high;
  }
}

template <typename T, int kWidth>
int LaunchWidth(const RopeArgs& args, StreamHandle stream) {
  const int64_t threads = args.positions * args.heads * (args.count / kWidth);
  return Launch(RopeKernel<T, kWidth>,
                {.grid_x = static_cast<unsigned>((threads + kRopeThreads - 1) / kRopeThreads),
                 .grid_y = static_cast<unsigned>((args.batch + kRopeSequences - 1) / kRopeSequences),
                 .block_x = kRopeThreads},
                stream, args);
}

}  // namespace

int Rope(const RopeArgs& args, DType dtype, StreamHandle stream) {
  if (args.batch * args.positions * args.heads * args.count == 0) return 0;
  return WithFloatType(dtype, [&]<typename T>() {
    constexpr int kWidth = 16 / sizeof(T);
    const bool packs = CanPack<T>(args.x, args.half) && CanPack<T>(args.r, args.half) &&
                       args.first % kWidth == 0 && args.count % kWidth == 0;
    return packs ? LaunchWidth<T, kWidth>(args, stream) : LaunchWidth<T, 1>(args, stream);
  });
}

}  // namespace ft::cuda
