#include "runtime/backends/cuda/device_code/gpu.h"
#include "runtime/backends/cuda/device_code/store.h"
#include "runtime/kernels/accumulate/cuda_device.h"

namespace ft::cuda {
namespace {

constexpr int kSumThreads = 256;
// Elements beside each other that a thread reads at once, and how often it does so before it writes: with a
// state of 4 bytes 64 bytes of it are under way, and 32 or 64 of x.
constexpr int kSumWidth = 8, kSumRuns = 2;

// Runs of kWidth elements, kSumRuns of them a thread, those of a block beside each other. Elements behind the
// last whole run are left out.
template <int kWidth>
__global__ void __launch_bounds__(kSumThreads) AccumulateKernel(AccumulateArgs args, int64_t first) {
  const int64_t runs = (args.elements - first) / kWidth;
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * (kSumThreads * kSumRuns) + threadIdx.x;
  float sum[kSumRuns][kWidth], x[kSumRuns][kWidth] = {};
#pragma unroll
  for (int r = 0; r < kSumRuns; ++r) {
    const int64_t run = begin + r * kSumThreads;
    if (run >= runs) continue;
    LoadRunAs(args.state, args.state_dtype, first + run * kWidth, sum[r]);
    if (args.x != nullptr) LoadRunAs(args.x, args.x_dtype, first + run * kWidth, x[r]);
  }
#pragma unroll
  for (int r = 0; r < kSumRuns; ++r) {
    const int64_t run = begin + r * kSumThreads;
    if (run >= runs) continue;
    if (args.x != nullptr) {
#pragma unroll
      for (int j = 0; j < kWidth; ++j) sum[r][j] += x[r][j];
    }
    if (args.result != nullptr) {
      StoreRunAs(args.result, args.result_dtype, first + run * kWidth, sum[r], false);
#pragma unroll
      for (int j = 0; j < kWidth; ++j) sum[r][j] = 0;
    }
    StoreRunAs(args.state, args.state_dtype, first + run * kWidth, sum[r], false);
  }
}

// Counts, which are few.
__global__ void __launch_bounds__(kSumThreads) AccumulateIntegers(AccumulateArgs args) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kSumThreads + threadIdx.x;
  if (i >= args.elements) return;
  auto* const state = static_cast<int64_t*>(args.state);
  const int64_t sum = state[i] + (args.x == nullptr ? 0 : static_cast<const int64_t*>(args.x)[i]);
  state[i] = args.result == nullptr ? sum : 0;
  if (args.result != nullptr) static_cast<int64_t*>(args.result)[i] = sum;
}

LaunchShape ShapeFor(int64_t threads) {
  LaunchShape shape;
  shape.grid_x = static_cast<unsigned>((threads + kSumThreads - 1) / kSumThreads);
  shape.block_x = kSumThreads;
  return shape;
}

// From element `first` on.
template <int kWidth>
int LaunchFloats(const AccumulateArgs& args, int64_t first, StreamHandle stream) {
  const int64_t runs = (args.elements - first) / kWidth;
  if (runs == 0) return 0;
  return Launch(&AccumulateKernel<kWidth>, ShapeFor((runs + kSumRuns - 1) / kSumRuns), stream, args, first);
}

bool IsAligned(const AccumulateArgs& args) {
  const auto bits = reinterpret_cast<uintptr_t>(args.x) | reinterpret_cast<uintptr_t>(args.state) |
                    reinterpret_cast<uintptr_t>(args.result);
  return bits % 16 == 0;
}

}  // namespace

int Accumulate(const AccumulateArgs& args, StreamHandle stream) {
  if (args.elements == 0) return 0;
  if (args.state_dtype == DType::kI64)
    return Launch(&AccumulateIntegers, ShapeFor(args.elements), stream, args);
  if (!IsAligned(args)) return LaunchFloats<1>(args, 0, stream);
  if (const int error = LaunchFloats<kSumWidth>(args, 0, stream); error != 0) return error;
  return LaunchFloats<1>(args, args.elements / kSumWidth * kSumWidth, stream);
}

}  // namespace ft::cuda
