#include "runtime/backends/cuda/device_code/map.h"
#include "runtime/kernels/cast/cuda_device.h"

namespace ft::cuda {
namespace {

template <int kIn, int kOut>
struct Arity {
  static constexpr int kInputs = kIn, kOutputs = kOut;
};

struct AddOp : Arity<2, 1> {
  __device__ __forceinline__ void operator()(const float (&in)[2], float (&out)[1]) const {
    out[0] = in[0] + in[1];
  }
};

struct CastOp : Arity<1, 1> {
  __device__ __forceinline__ void operator()(const float (&in)[1], float (&out)[1]) const { out[0] = in[0]; }
};

template <typename T>
const T* In(const void* data) {
  return static_cast<const T*>(data);
}
template <typename T>
T* Out(void* data) {
  return static_cast<T*>(data);
}

template <typename T>
int AddOf(const BinaryArgs& args, StreamHandle stream) {
  const bool suffix = args.period != args.elements;
  const MapArgs<AddOp, T, T> map = {{In<T>(args.a), In<T>(args.b)},
                                    {Out<T>(args.r)},
                                    args.elements,
                                    suffix ? static_cast<uint32_t>(args.period) : 0,
                                    {}};
  return suffix ? LaunchMap<true>(map, stream) : LaunchMap(map, stream);
}

}  // namespace

int Add(const BinaryArgs& args, DType dtype, StreamHandle stream) {
  return WithFloatType(dtype, [&]<typename T>() { return AddOf<T>(args, stream); });
}

int Cast(const UnaryArgs& args, DType from, DType to, StreamHandle stream) {
  return WithFloatType(from, [&]<typename X>() {
    return WithFloatType(to, [&]<typename R>() {
      const MapArgs<CastOp, X, R> map = {{In<X>(args.x)}, {Out<R>(args.r)}, args.elements, 0, {}};
      return LaunchMap(map, stream);
    });
  });
}

}  // namespace ft::cuda
