#include <cstdint>

#include "runtime/backends/cuda/routines/primitive_functions.h"
#include "runtime/backends/cuda/routines/primitives.h"

namespace ft::cuda {
namespace {

using primitive::BitsOf;

constexpr int kPrimitiveThreads = 256;
constexpr int kPrimitiveInFlight = 4;  // elements of a thread that are under way at once
constexpr int kPrimitiveTile = kPrimitiveThreads * kPrimitiveInFlight;

// at % period, for at < period + kPrimitiveTile.
__device__ __forceinline__ int64_t InPeriod(int64_t at, int64_t period) {
  if (period >= kPrimitiveTile) return at < period ? at : at - period;
  return static_cast<uint32_t>(at) % static_cast<uint32_t>(period);
}

// T is what all operands and the result are computed in.
template <typename T>
__global__ void __launch_bounds__(kPrimitiveThreads) PrimitiveKernel(PrimitiveArgs args) {
  const int64_t tile = static_cast<int64_t>(blockIdx.x) * kPrimitiveTile;
  BitsOf<T> bits[kPrimitiveInFlight][kMaxElementwiseOperands] = {};
#pragma unroll
  for (int j = 0; j < kMaxElementwiseOperands; ++j) {
    if (j >= args.count) break;
    const PrimitiveOperand operand = args.in[j];
    const int64_t phase = tile < operand.period ? tile : tile % operand.period;
#pragma unroll
    for (int k = 0; k < kPrimitiveInFlight; ++k) {
      const uint32_t local = threadIdx.x + k * kPrimitiveThreads;
      if (tile + local >= args.elements) continue;
      bits[k][j] = primitive::Load<T>(operand.data, operand.dtype, InPeriod(phase + local, operand.period));
    }
  }
#pragma unroll
  for (int k = 0; k < kPrimitiveInFlight; ++k) {
    const int64_t i = tile + threadIdx.x + k * kPrimitiveThreads;
    if (i >= args.elements) return;
    T in[kMaxElementwiseOperands];
#pragma unroll
    for (int j = 0; j < kMaxElementwiseOperands; ++j)
      in[j] = primitive::Widened(bits[k][j], args.in[j].dtype);
    primitive::Store(args.r, args.dtype, i, primitive::Of(args.kind, in, args.p, args.q));
  }
}

template <typename From, typename To>
__global__ void __launch_bounds__(kPrimitiveThreads) ConvertKernel(ConvertArgs args) {
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * kPrimitiveTile + threadIdx.x;
  BitsOf<From> bits[kPrimitiveInFlight];
#pragma unroll
  for (int k = 0; k < kPrimitiveInFlight; ++k) {
    const int64_t i = begin + k * kPrimitiveThreads;
    if (i < args.elements) bits[k] = primitive::Load<From>(args.x, args.from, i);
  }
#pragma unroll
  for (int k = 0; k < kPrimitiveInFlight; ++k) {
    const int64_t i = begin + k * kPrimitiveThreads;
    if (i >= args.elements) return;
    const From value = primitive::Widened(bits[k], args.from);
    primitive::Store(args.r, args.to, i, primitive::Converted<To>(value, args.to));
  }
}

LaunchShape ShapeFor(int64_t elements) {
  return {.grid_x = static_cast<unsigned>((elements + kPrimitiveTile - 1) / kPrimitiveTile),
          .block_x = kPrimitiveThreads};
}

}  // namespace

int Primitive(const PrimitiveArgs& args, bool of_floats, StreamHandle stream) {
  if (args.elements == 0) return 0;
  const auto kernel = of_floats ? PrimitiveKernel<float> : PrimitiveKernel<primitive::Integer>;
  return Launch(kernel, ShapeFor(args.elements), stream, args);
}

int Convert(const ConvertArgs& args, StreamHandle stream) {
  using primitive::Integer;
  if (args.elements == 0) return 0;
  const bool to_float = IsFloat(args.to);
  const auto kernel = IsFloat(args.from)
                          ? (to_float ? ConvertKernel<float, float> : ConvertKernel<float, Integer>)
                          : (to_float ? ConvertKernel<Integer, float> : ConvertKernel<Integer, Integer>);
  return Launch(kernel, ShapeFor(args.elements), stream, args);
}

}  // namespace ft::cuda
