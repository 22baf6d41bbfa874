#include "runtime/backends/cpu/routines/elementwise.h"

#include "runtime/backends/cpu/routines/vector_math.h"

namespace ft::cpu::FT_ISA {
namespace {

template <typename Op>
FT_INLINE void Binary(const BinaryArgs& args, int64_t begin, int64_t end, const Op& op) {
  for (int64_t i = begin; i < end;) {
    const int64_t offset = i % args.period;
    const int64_t n = end - i < args.period - offset ? end - i : args.period - offset;
    const float* a = args.a + i;
    const float* b = args.b + offset;
    float* r = args.r + i;
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) r[j] = op(a[j], b[j]);
    i += n;
  }
}

void Add(const BinaryArgs& args, int64_t begin, int64_t end) {
  Binary(args, begin, end, [](float a, float b) __attribute__((always_inline)) { return a + b; });
}

void Mul(const BinaryArgs& args, int64_t begin, int64_t end) {
  Binary(args, begin, end, [](float a, float b) __attribute__((always_inline)) { return a * b; });
}

void Scale(const UnaryArgs& args, int64_t begin, int64_t end) {
  const float factor = args.factor;
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) args.r[i] = args.x[i] * factor;
}

// gelu_tanh(x) = x (1 + tanh(u)) / 2 = x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3): no cancellation
// for x < 0.
constexpr float kTwoSqrt2OverPi = 1.5957691216057308f;
constexpr float kCubic = 0.044715f;

void GeluTanh(const UnaryArgs& args, int64_t begin, int64_t end) {
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) {
    const float x = args.x[i];
    const float z = kTwoSqrt2OverPi * x * Fma(kCubic * x, x, 1.0f);
    args.r[i] = x * Sigmoid(z);
  }
}

void GeluTanhGrad(const UnaryGradArgs& args, int64_t begin, int64_t end) {
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) {
    const float x = args.x[i];
    const float square = x * x;
    const float z = kTwoSqrt2OverPi * x * Fma(kCubic, square, 1.0f);
    const float dz = kTwoSqrt2OverPi * Fma(3.0f * kCubic, square, 1.0f);
    const float s = Sigmoid(z);
    args.dx[i] = args.dy[i] * (s * Fma(x * (1.0f - s), dz, 1.0f));
  }
}

constexpr float kInverseSqrt2Pi = 0.39894228040143268f;

void GeluErf(const UnaryArgs& args, int64_t begin, int64_t end) {
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) {
    const float x = args.x[i];
    args.r[i] = x * NormalCdf(x);
  }
}

void GeluErfGrad(const UnaryGradArgs& args, int64_t begin, int64_t end) {
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) {
    const float x = args.x[i];
    args.dx[i] = args.dy[i] * Fma(x * kInverseSqrt2Pi, Exp(-0.5f * x * x), NormalCdf(x));
  }
}

void Swiglu(const SwigluArgs& args, int64_t begin, int64_t end) {
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) args.r[i] = args.gate[i] * Sigmoid(args.gate[i]) * args.up[i];
}

void SwigluGrad(const SwigluGradArgs& args, int64_t begin, int64_t end) {
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) {
    const float dy = args.dy[i], gate = args.gate[i], up = args.up[i];
    const float s = Sigmoid(gate);
    args.dgate[i] = dy * up * (s * Fma(gate, 1.0f - s, 1.0f));
    args.dup[i] = dy * (gate * s);
  }
}

void Rope(const RopeArgs& args, int64_t begin, int64_t end) {
  const int64_t half = args.half;
  for (int64_t row = begin; row < end; ++row) {
    const float* cosine = args.cosine + row % args.positions * half;
    const float* sine = args.sine + row % args.positions * half;
    for (int64_t head = 0; head < args.heads; ++head) {
      const int64_t at = (row * args.heads + head) * 2 * half;
      const float* x = args.x + at;
      float* r = args.r + at;
#pragma omp simd
      for (int64_t i = 0; i < half; ++i) {
        const float low = x[i], high = x[i + half];
        r[i] = Fma(low, cosine[i], -(high * sine[i]));
        r[i + half] = Fma(high, cosine[i], low * sine[i]);
      }
    }
  }
}

}  // namespace

extern const ElementwiseRoutines kElementwise;
const ElementwiseRoutines kElementwise = {Add,          Mul,         Scale,  GeluTanh,   GeluErf,
                                          GeluTanhGrad, GeluErfGrad, Swiglu, SwigluGrad, Rope};

}  // namespace ft::cpu::FT_ISA
