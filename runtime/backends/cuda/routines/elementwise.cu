#include "runtime/backends/cuda/routines/elementwise.h"
#include "runtime/backends/cuda/routines/map.h"

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

struct MulOp : Arity<2, 1> {
  __device__ __forceinline__ void operator()(const float (&in)[2], float (&out)[1]) const {
    out[0] = in[0] * in[1];
  }
};

struct ScaleOp : Arity<1, 1> {
  float factor;
  __device__ __forceinline__ void operator()(const float (&in)[1], float (&out)[1]) const {
    out[0] = in[0] * factor;
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

template <typename T, typename Op>
int Binary(const BinaryArgs& args, StreamHandle stream) {
  const bool suffix = args.period != args.elements;
  const MapArgs<Op, T, T> map = {{In<T>(args.a), In<T>(args.b)},
                                 {Out<T>(args.r)},
                                 args.elements,
                                 suffix ? static_cast<uint32_t>(args.period) : 0,
                                 {}};
  return suffix ? LaunchMap<true>(map, stream) : LaunchMap(map, stream);
}

template <typename T, typename Op>
int Unary(const UnaryArgs& args, const Op& op, StreamHandle stream) {
  return LaunchMap(MapArgs<Op, T, T>{{In<T>(args.x)}, {Out<T>(args.r)}, args.elements, 0, op}, stream);
}

}  // namespace

int Add(const BinaryArgs& args, DType dtype, StreamHandle stream) {
  return WithFloatType(dtype, [&]<typename T>() { return Binary<T, AddOp>(args, stream); });
}

int Mul(const BinaryArgs& args, DType dtype, StreamHandle stream) {
  return WithFloatType(dtype, [&]<typename T>() { return Binary<T, MulOp>(args, stream); });
}

int Scale(const UnaryArgs& args, float factor, DType dtype, StreamHandle stream) {
  return WithFloatType(dtype, [&]<typename T>() { return Unary<T>(args, ScaleOp{{}, factor}, stream); });
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
