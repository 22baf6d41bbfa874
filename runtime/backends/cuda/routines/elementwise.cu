#include <cmath>

#include "runtime/backends/cuda/routines/elementwise.h"
#include "runtime/backends/cuda/routines/map.h"

namespace ft::cuda {
namespace {

// exp and 1 / x for results of type T. For 16 bits the units' own approximations do: of exp(x) within 2 + 1.2
// |x| ulp of f32, of 1 / x within 2. The exact ones would make these kernels wait for arithmetic, not memory.
template <typename T>
__device__ __forceinline__ float Exp(float x) {
#if defined(__CUDACC__)
  if constexpr (sizeof(T) == 2) return __expf(x);
#endif
  return expf(x);
}
template <typename T>
__device__ __forceinline__ float Reciprocal(float x) {
#if defined(__CUDACC__)
  if constexpr (sizeof(T) == 2) return __fdividef(1.0f, x);
#endif
  return 1.0f / x;
}

template <typename T>
__device__ __forceinline__ float Sigmoid(float x) {
  return Reciprocal<T>(1.0f + Exp<T>(-x));
}

// Distribution function of the standard normal, by the polynomial of the CPU's vector_math.h: no branches,
// and no cancellation for x < 0, unlike 1 + erf.
template <typename T>
__device__ __forceinline__ float NormalCdf(float x) {
  const float t = Reciprocal<T>(fmaf(0.4f, fabsf(x) * 0.70710678118654752f, 1.0f));
  float p = -0.03415652278f;
  p = fmaf(p, t, 0.2224943816f);
  p = fmaf(p, t, -0.555611827f);
  p = fmaf(p, t, 0.6220585055f);
  p = fmaf(p, t, -0.3454069048f);
  p = fmaf(p, t, 0.3042328417f);
  p = fmaf(p, t, 0.1187818744f);
  p = fmaf(p, t, 0.2172038742f);
  p = fmaf(p, t, 0.2246833808f);
  p = fmaf(p, t, 0.2257203975f);
  const float tail = 0.5f * t * p * Exp<T>(-0.5f * x * x);
  return x < 0.0f ? tail : 1.0f - tail;
}

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

// gelu_tanh(x) = x (1 + tanh(u)) / 2 = x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3): no cancellation
// for x < 0.
constexpr float kTwoSqrt2OverPi = 1.5957691216057308f;
constexpr float kCubic = 0.044715f;

template <typename T>
struct GeluTanhOp : Arity<1, 1> {
  __device__ __forceinline__ void operator()(const float (&in)[1], float (&out)[1]) const {
    const float x = in[0];
    out[0] = x * Sigmoid<T>(kTwoSqrt2OverPi * x * fmaf(kCubic * x, x, 1.0f));
  }
};

template <typename T>
struct GeluTanhGradOp : Arity<2, 1> {
  __device__ __forceinline__ void operator()(const float (&in)[2], float (&out)[1]) const {
    const float dy = in[0], x = in[1], square = x * x;
    const float dz = kTwoSqrt2OverPi * fmaf(3.0f * kCubic, square, 1.0f);
    const float s = Sigmoid<T>(kTwoSqrt2OverPi * x * fmaf(kCubic, square, 1.0f));
    out[0] = dy * (s * fmaf(x * (1.0f - s), dz, 1.0f));
  }
};

template <typename T>
struct GeluErfOp : Arity<1, 1> {
  __device__ __forceinline__ void operator()(const float (&in)[1], float (&out)[1]) const {
    out[0] = in[0] * NormalCdf<T>(in[0]);
  }
};

template <typename T>
struct GeluErfGradOp : Arity<2, 1> {
  __device__ __forceinline__ void operator()(const float (&in)[2], float (&out)[1]) const {
    constexpr float kInverseSqrt2Pi = 0.39894228040143268f;
    const float dy = in[0], x = in[1];
    out[0] = dy * fmaf(x * kInverseSqrt2Pi, Exp<T>(-0.5f * x * x), NormalCdf<T>(x));
  }
};

template <typename T>
struct SwigluOp : Arity<2, 1> {
  __device__ __forceinline__ void operator()(const float (&in)[2], float (&out)[1]) const {
    const float gate = in[0], up = in[1];
    out[0] = gate * Sigmoid<T>(gate) * up;
  }
};

template <typename T>
struct SwigluGradOp : Arity<3, 2> {
  __device__ __forceinline__ void operator()(const float (&in)[3], float (&out)[2]) const {
    const float dy = in[0], gate = in[1], up = in[2];
    const float s = Sigmoid<T>(gate);
    out[0] = dy * up * (s * fmaf(gate, 1.0f - s, 1.0f));
    out[1] = dy * (gate * s);
  }
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

template <typename T, typename Op>
int UnaryGrad(const UnaryGradArgs& args, StreamHandle stream) {
  const MapArgs<Op, T, T> map = {{In<T>(args.dy), In<T>(args.x)}, {Out<T>(args.dx)}, args.elements, 0, {}};
  return LaunchMap(map, stream);
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

int GeluTanh(const UnaryArgs& args, DType dtype, StreamHandle stream) {
  return WithFloatType(dtype, [&]<typename T>() { return Unary<T>(args, GeluTanhOp<T>{}, stream); });
}

int GeluErf(const UnaryArgs& args, DType dtype, StreamHandle stream) {
  return WithFloatType(dtype, [&]<typename T>() { return Unary<T>(args, GeluErfOp<T>{}, stream); });
}

int Cast(const UnaryArgs& args, DType from, DType to, StreamHandle stream) {
  return WithFloatType(from, [&]<typename X>() {
    return WithFloatType(to, [&]<typename R>() {
      const MapArgs<CastOp, X, R> map = {{In<X>(args.x)}, {Out<R>(args.r)}, args.elements, 0, {}};
      return LaunchMap(map, stream);
    });
  });
}

int GeluTanhGrad(const UnaryGradArgs& args, DType dtype, StreamHandle stream) {
  return WithFloatType(dtype, [&]<typename T>() { return UnaryGrad<T, GeluTanhGradOp<T>>(args, stream); });
}

int GeluErfGrad(const UnaryGradArgs& args, DType dtype, StreamHandle stream) {
  return WithFloatType(dtype, [&]<typename T>() { return UnaryGrad<T, GeluErfGradOp<T>>(args, stream); });
}

int Swiglu(const SwigluArgs& args, DType dtype, StreamHandle stream) {
  return WithFloatType(dtype, [&]<typename T>() {
    const MapArgs<SwigluOp<T>, T, T> map = {
        {In<T>(args.gate), In<T>(args.up)}, {Out<T>(args.r)}, args.elements, 0, {}};
    return LaunchMap(map, stream);
  });
}

int SwigluGrad(const SwigluGradArgs& args, DType dtype, StreamHandle stream) {
  return WithFloatType(dtype, [&]<typename T>() {
    const MapArgs<SwigluGradOp<T>, T, T> map = {{In<T>(args.dy), In<T>(args.gate), In<T>(args.up)},
                                                {Out<T>(args.dgate), Out<T>(args.dup)},
                                                args.elements,
                                                0,
                                                {}};
    return LaunchMap(map, stream);
  });
}

}  // namespace ft::cuda
