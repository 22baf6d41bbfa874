#include <cmath>

#include "runtime/backends/cuda/device_code/element.h"
#include "runtime/backends/cuda/device_code/philox.h"
#include "runtime/backends/cuda/device_code/trigonometry.h"
#include "runtime/kernels/random/cuda_device.h"

namespace ft::cuda {
namespace {

constexpr int kDrawThreads = 256;

// ln(x) for normal positive x, within 2 ulp: the CPU's (vector_math.h), since logf has other last bits. x =
// 2^e m with m in [sqrt(1/2), sqrt(2)).
__device__ __forceinline__ float Log(float x) {
  const int32_t bits = static_cast<int32_t>(__float_as_uint(x)) - 0x3f3504f3;  // sqrt(1/2)
  const float exponent = static_cast<float>(bits >> 23);
  const float f = __uint_as_float(static_cast<uint32_t>((bits & 0x007fffff) + 0x3f3504f3)) - 1.0f;
  float p = 0.06971611471f;
  p = fmaf(p, f, -0.1147973385f);
  p = fmaf(p, f, 0.1168541992f);
  p = fmaf(p, f, -0.1242568733f);
  p = fmaf(p, f, 0.1424905765f);
  p = fmaf(p, f, -0.1666780232f);
  p = fmaf(p, f, 0.2000071575f);
  p = fmaf(p, f, -0.2499999696f);
  p = fmaf(p, f, 0.3333333118f);
  const float square = f * f;
  const float low = fmaf(exponent, 1.428606820309417e-6f, fmaf(p * f, square, -0.5f * square));
  return fmaf(exponent, 0x1.62e4p-1f, f + low);
}

// Box-Muller on a pair of words.
__device__ __forceinline__ void NormalPair(uint32_t w0, uint32_t w1, float stddev, float& z0, float& z1) {
  // Halves are exact in f32, so their sum is the word rounded once; then + 1 and the scaling.
  const float high = static_cast<float>(w0 >> 16) * 65536.0f, low = static_cast<float>(w0 & 0xFFFFu);
  const float u = (high + low + 1.0f) * 0x1p-32f;
  const float radius = stddev * sqrtf(-2.0f * Log(u));
  // The angle in quarter turns: the nearest whole number of them, and the rest from the lower bits.
  const uint32_t shifted = w1 + 0x20000000u;
  const float rest = static_cast<float>(static_cast<int32_t>(shifted & 0x3FFFFFFFu) - 0x20000000) * 0x1p-30f;
  const CosSin angle = OfQuarterTurns(shifted >> 30, rest);
  z0 = radius * angle.cosine;
  z1 = radius * angle.sine;
}

struct NormalNumbers {
  __device__ static void Make(const PhiloxWords& words, float scale, float z[4]) {
    NormalPair(words.at[0], words.at[1], scale, z[0], z[1]);
    NormalPair(words.at[2], words.at[3], scale, z[2], z[3]);
  }
};

struct EvenNumbers {
  __device__ static void Make(const PhiloxWords& words, float scale, float z[4]) {
#pragma unroll
    for (int j = 0; j < 4; ++j)
      z[j] = scale * (static_cast<float>(static_cast<int32_t>(words.at[j] >> 8)) * 0x1p-23f - 1.0f);
  }
};

// A thread makes the four numbers of one Philox block.
template <typename T, typename Numbers>
__global__ void __launch_bounds__(kDrawThreads) DrawKernel(DrawArgs args) {
  const int64_t at = 4 * (static_cast<int64_t>(blockIdx.x) * kDrawThreads + threadIdx.x);
  if (at >= args.elements) return;
  const PhiloxKey key = {static_cast<uint64_t>(args.rng[0]), args.stream, 0};
  const PhiloxWords words = Philox(key, static_cast<uint64_t>(args.first + at) / 4);
  float z[4];
  Numbers::Make(words, args.scale, z);
  Pack<T, 4> pack;
#pragma unroll
  for (int j = 0; j < 4; ++j) pack.at[j] = FromFloat<T>(z[j]);
  T* r = static_cast<T*>(args.r) + at;
  if (at + 4 <= args.elements && reinterpret_cast<uintptr_t>(args.r) % sizeof(pack) == 0) {
    *reinterpret_cast<Pack<T, 4>*>(r) = pack;
    return;
  }
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    if (at + j < args.elements) r[j] = pack.at[j];
  }
}

template <typename Numbers>
int Draw(const DrawArgs& args, StreamHandle stream) {
  if (args.elements == 0) return 0;
  constexpr int64_t kTile = 4 * kDrawThreads;
  return WithFloatType(args.dtype, [&]<typename T>() {
    return Launch(
        DrawKernel<T, Numbers>,
        {.grid_x = static_cast<unsigned>((args.elements + kTile - 1) / kTile), .block_x = kDrawThreads},
        stream, args);
  });
}

}  // namespace

int Normal(const DrawArgs& args, StreamHandle stream) { return Draw<NormalNumbers>(args, stream); }

int Uniform(const DrawArgs& args, StreamHandle stream) { return Draw<EvenNumbers>(args, stream); }

}  // namespace ft::cuda
