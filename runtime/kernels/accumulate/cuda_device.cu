#include <algorithm>

#include "runtime/backends/cuda/device_code/gpu.h"
#include "runtime/backends/cuda/device_code/map.h"
#include "runtime/backends/cuda/device_code/store.h"
#include "runtime/kernels/accumulate/cuda_device.h"

namespace ft::cuda {
namespace {

constexpr unsigned kSumThreads = 256;
constexpr int64_t kSumBlocks = 1 << 16;

__device__ __forceinline__ void AccumulateFloats(const AccumulateArgs& args, int64_t i) {
  float sum = LoadAs(args.state, args.state_dtype, i);
  if (args.x != nullptr) sum += LoadAs(args.x, args.x_dtype, i);
  StoreAs(args.state, args.state_dtype, i, args.result == nullptr ? sum : 0.0f);
  if (args.result != nullptr) StoreAs(args.result, args.result_dtype, i, sum);
}

// Counts, which are few.
__device__ __forceinline__ void AccumulateIntegers(const AccumulateArgs& args, int64_t i) {
  auto* const state = static_cast<int64_t*>(args.state);
  const int64_t sum = state[i] + (args.x == nullptr ? 0 : static_cast<const int64_t*>(args.x)[i]);
  state[i] = args.result == nullptr ? sum : 0;
  if (args.result != nullptr) static_cast<int64_t*>(args.result)[i] = sum;
}

__global__ void __launch_bounds__(kSumThreads) AccumulateKernel(AccumulateArgs args) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kSumThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kSumThreads + threadIdx.x; i < args.elements;
       i += step) {
    if (args.state_dtype == DType::kI64) {
      AccumulateIntegers(args, i);
    } else {
      AccumulateFloats(args, i);
    }
  }
}

struct AccumulateOp {
  static constexpr int kInputs = 2, kOutputs = 1;
  __device__ __forceinline__ void operator()(const float (&in)[2], float (&out)[1]) const {
    out[0] = in[0] + in[1];
  }
};

}  // namespace

int Accumulate(const AccumulateArgs& args, StreamHandle stream) {
  if (args.elements == 0) return 0;
  const bool is_map = args.result == nullptr && args.x_dtype == args.state_dtype;
  if (is_map && args.state_dtype != DType::kI64) {
    return WithFloatType(args.state_dtype, [&]<typename T>() {
      T* state = static_cast<T*>(args.state);
      return LaunchMap(
          MapArgs<AccumulateOp, T, T>{{state, static_cast<const T*>(args.x)}, {state}, args.elements, 0, {}},
          stream);
    });
  }
  LaunchShape shape;
  shape.grid_x = static_cast<unsigned>(std::min(kSumBlocks, (args.elements + kSumThreads - 1) / kSumThreads));
  shape.block_x = kSumThreads;
  return Launch(&AccumulateKernel, shape, stream, args);
}

}  // namespace ft::cuda
