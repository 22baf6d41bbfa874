#include "runtime/backends/cpu/routines/norm.h"

#include "runtime/backends/cpu/routines/vector_math.h"

namespace ft::cpu::FT_ISA {
namespace {

struct Moments {
  float mean;
  float scale;  // 1 / sqrt(variance + eps)
};

// Two passes: the second sees x - mean, so nothing cancels.
FT_INLINE Moments MomentsOf(const float* x, int64_t n, float eps) {
  float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += x[i];
  const float mean = sum / static_cast<float>(n);
  float squares = 0.0f;
#pragma omp simd reduction(+ : squares)
  for (int64_t i = 0; i < n; ++i) squares += (x[i] - mean) * (x[i] - mean);
  return {mean, 1.0f / __builtin_sqrtf(squares / static_cast<float>(n) + eps)};
}

FT_INLINE float InverseRms(const float* x, int64_t n, float eps) {
  float squares = 0.0f;
#pragma omp simd reduction(+ : squares)
  for (int64_t i = 0; i < n; ++i) squares += x[i] * x[i];
  return 1.0f / __builtin_sqrtf(squares / static_cast<float>(n) + eps);
}

FT_INLINE void Clear(float* values, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) values[i] = 0.0f;
}

void LayerNorm(const NormArgs& args, int64_t begin, int64_t end) {
  const int64_t n = args.columns;
  for (int64_t row = begin; row < end; ++row) {
    const float* x = args.x + row * n;
    float* result = args.result + row * n;
    const Moments moments = MomentsOf(x, n, args.eps);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      result[i] = Fma((x[i] - moments.mean) * moments.scale, args.weight[i], args.bias[i]);
    }
  }
}

void RmsNorm(const NormArgs& args, int64_t begin, int64_t end) {
  const int64_t n = args.columns;
  for (int64_t row = begin; row < end; ++row) {
    const float* x = args.x + row * n;
    float* result = args.result + row * n;
    const float scale = InverseRms(x, n, args.eps);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) result[i] = x[i] * scale * args.weight[i];
  }
}

// With h = (x - mean) * scale and g = dy * weight: dx = scale * (g - mean(g) - h * mean(g h)).
void LayerNormGrad(const NormGradArgs& args, float* dweight, float* dbias, int64_t begin, int64_t end) {
  const int64_t n = args.columns;
  Clear(dweight, n);
  Clear(dbias, n);
  for (int64_t row = begin; row < end; ++row) {
    const float* x = args.x + row * n;
    const float* dy = args.dy + row * n;
    float* dx = args.dx + row * n;
    const Moments moments = MomentsOf(x, n, args.eps);
    float sum_g = 0.0f, sum_gh = 0.0f;
#pragma omp simd reduction(+ : sum_g, sum_gh)
    for (int64_t i = 0; i < n; ++i) {
      const float h = (x[i] - moments.mean) * moments.scale;
      const float g = dy[i] * args.weight[i];
      sum_g += g;
      sum_gh += g * h;
      dweight[i] += dy[i] * h;
      dbias[i] += dy[i];
    }
    const float mean_g = sum_g / static_cast<float>(n);
    const float mean_gh = sum_gh / static_cast<float>(n);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      const float h = (x[i] - moments.mean) * moments.scale;
      dx[i] = moments.scale * (dy[i] * args.weight[i] - mean_g - h * mean_gh);
    }
  }
}

// With h = x * scale and g = dy * weight: dx = scale * (g - h * mean(g h)).
void RmsNormGrad(const NormGradArgs& args, float* dweight, int64_t begin, int64_t end) {
  const int64_t n = args.columns;
  Clear(dweight, n);
  for (int64_t row = begin; row < end; ++row) {
    const float* x = args.x + row * n;
    const float* dy = args.dy + row * n;
    float* dx = args.dx + row * n;
    const float scale = InverseRms(x, n, args.eps);
    float sum_gh = 0.0f;
#pragma omp simd reduction(+ : sum_gh)
    for (int64_t i = 0; i < n; ++i) {
      const float h = x[i] * scale;
      sum_gh += dy[i] * args.weight[i] * h;
      dweight[i] += dy[i] * h;
    }
    const float mean_gh = sum_gh / static_cast<float>(n);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      dx[i] = scale * (dy[i] * args.weight[i] - x[i] * scale * mean_gh);
    }
  }
}

}  // namespace

extern const NormRoutines kNorm;
const NormRoutines kNorm = {LayerNorm, RmsNorm, LayerNormGrad, RmsNormGrad};

}  // namespace ft::cpu::FT_ISA
