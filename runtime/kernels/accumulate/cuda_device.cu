#include "runtime/backends/cuda/device_code/gpu.h"
#include "runtime/backends/cuda/device_code/map.h"
#include "runtime/kernels/accumulate/cuda_device.h"

namespace ft::cuda {
namespace {

struct AccumulateOp {
  static constexpr int kInputs = 2, kOutputs = 1;
  __device__ __forceinline__ void operator()(const float (&in)[2], float (&out)[1]) const {
    out[0] = in[0] + in[1];
  }
};

struct AccumulatedOp {
  static constexpr int kInputs = 2, kOutputs = 2;
  __device__ __forceinline__ void operator()(const float (&in)[2], float (&out)[2]) const {
    out[0] = in[0] + in[1];
    out[1] = 0.0f;
  }
};

}  // namespace

int Accumulate(const AccumulateArgs& args, StreamHandle stream) {
  return WithFloatType(args.dtype, [&]<typename T>() {
    T* state = static_cast<T*>(args.state);
    return LaunchMap(
        MapArgs<AccumulateOp, T, T>{{state, static_cast<const T*>(args.x)}, {state}, args.elements, 0, {}},
        stream);
  });
}

int Accumulated(const AccumulateArgs& args, StreamHandle stream) {
  return WithFloatType(args.dtype, [&]<typename T>() {
    T* state = static_cast<T*>(args.state);
    return LaunchMap(MapArgs<AccumulatedOp, T, T>{{state, static_cast<const T*>(args.x)},
                                                  {static_cast<T*>(args.result), state},
                                                  args.elements,
                                                  0,
                                                  {}},
                     stream);
  });
}

}  // namespace ft::cuda
