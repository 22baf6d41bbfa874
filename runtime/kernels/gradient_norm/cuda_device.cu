#include <algorithm>

#include "runtime/backends/cuda/device_code/element.h"
#include "runtime/backends/cuda/device_code/fixed_point.h"
#include "runtime/backends/cuda/device_code/gpu.h"
#include "runtime/base/flat_layout.h"
#include "runtime/kernels/gradient_norm/cuda_device.h"

namespace ft::cuda {
namespace {

constexpr int kSumThreads = 256;
constexpr int kSumWarps = kSumThreads / kWarp;
// Blocks of kBlockElements that a warp sums at most. The words of all of them meet in shared memory first, so
// that few additions contend for the accumulator. Fewer where there would not be kFullGrid thread blocks
// otherwise. The sum is exact: its bits do not depend on who adds what.
constexpr int kMostPerWarp = 8;
constexpr int64_t kFullGrid = 1024;

// The sum of one block of `n` elements, valid in lane 0. Element i goes to lane i % 32, lanes are added as a
// binary tree: the order of the CPU's block_sum_squares.
template <typename T>
__device__ __forceinline__ double BlockSumSquares(const T* x, int n, float factor, int lane) {
  constexpr int kPerLane = kBlockElements / kWarp;
  float values[kPerLane];  // all read at once: as many bytes under way as the memory wants
#pragma unroll
  for (int k = 0; k < kPerLane; ++k) {
    const int i = k * kWarp + lane;
    values[k] = i < n ? ToFloat(x[i]) : 0.0f;
  }
  double sum = 0.0;
#pragma unroll
  for (int k = 0; k < kPerLane; ++k) {
    const double value = values[k] * factor;
    sum += value * value;  // the product is exact: at most 48 bits
  }
#pragma unroll
  for (int width = kWarp / 2; width > 0; width /= 2) sum += __shfl_down_sync(kAllLanes, sum, width);
  return sum;
}

template <typename T>
__global__ __launch_bounds__(kSumThreads) void AddSquares(SumSquaresArgs args, int per_warp) {
  __shared__ unsigned long long words[kAccumulatorWords];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kWarp, warp = thread / kWarp;
  if (thread < kAccumulatorWords) words[thread] = 0;
  __syncthreads();
  const float factor = args.factor != nullptr ? *args.factor : 1.0f;
  const int64_t begin = (static_cast<int64_t>(blockIdx.x) * kSumWarps + warp) * per_warp;
  for (int k = 0; k < per_warp; ++k) {
    const int64_t first = (begin + k) * kBlockElements;
    if (first >= args.elements) break;
    const int64_t rest = args.elements - first;
    const int n = static_cast<int>(rest < kBlockElements ? rest : kBlockElements);
    const double sum = BlockSumSquares(static_cast<const T*>(args.x) + first, n, factor, lane);
    if (lane == 0) AddExactly(sum, words);
  }
  __syncthreads();
  if (thread < kAccumulatorWords && words[thread] != 0) {
    atomicAdd(reinterpret_cast<unsigned long long*>(args.sum) + thread, words[thread]);
  }
}

// sum = earlier, or 0.
__global__ void BeginSum(SumSquaresArgs args) {
  const int word = static_cast<int>(threadIdx.x);
  if (word < kAccumulatorWords) args.sum[word] = args.earlier != nullptr ? args.earlier[word] : 0;
}

__global__ void ResolveCarries(int64_t* sum) { Normalize(sum); }

__global__ void ClipOne(ClipCoefficientArgs args) {
  const float scale = args.scaler != nullptr ? *args.scaler : 1.0f;
  const float factor = args.factor != nullptr ? *args.factor : 1.0f;
  const double unscaled = sqrt(ToDouble(args.sum)) / static_cast<double>(scale);
  const float norm = static_cast<float>(unscaled * static_cast<double>(factor));
  *args.norm = norm;
  if (!IsFinite(norm) || (args.loss != nullptr && !IsFinite(*args.loss))) {
    *args.coefficient = __uint_as_float(0x7FC00000u);  // NaN: no optimizer applies this step
    return;
  }
  float clip = 1.0f;
  if (args.max_norm != 0.0) {
    const float wanted = static_cast<float>(args.max_norm) / (norm + 1e-6f);
    clip = wanted < 1.0f ? wanted : 1.0f;
  }
  *args.coefficient = clip / scale * factor;
}

}  // namespace

int SumSquares(const SumSquaresArgs& args, StreamHandle stream) {
  LaunchShape one;
  one.block_x = kWarp;
  if (args.earlier != args.sum) {
    if (const int error = Launch(&BeginSum, one, stream, args); error != 0) return error;
  }
  if (args.elements > 0) {
    const int per_warp = static_cast<int>(
        std::clamp<int64_t>(args.elements / (kFullGrid * kSumWarps * kBlockElements), 1, kMostPerWarp));
    const int64_t per_block = kSumWarps * per_warp * kBlockElements;
    LaunchShape shape;
    shape.grid_x = static_cast<unsigned>((args.elements + per_block - 1) / per_block);
    shape.block_x = kSumThreads;
    const int error = WithFloatType(
        args.dtype, [&]<typename T>() { return Launch(&AddSquares<T>, shape, stream, args, per_warp); });
    if (error != 0) return error;
  }
  one.block_x = 1;
  return Launch(&ResolveCarries, one, stream, args.sum);
}

int ClipCoefficient(const ClipCoefficientArgs& args, StreamHandle stream) {
  return Launch(&ClipOne, LaunchShape{}, stream, args);
}

}  // namespace ft::cuda
