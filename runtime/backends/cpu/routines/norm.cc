#include "runtime/backends/cpu/routines/norm.h"

#include "runtime/backends/cpu/routines/element.h"

namespace ft::cpu::FT_ISA {
namespace {

struct Moments {
  float mean;
  float scale;  // 1 / sqrt(variance + eps)
};

// Two passes: the second sees x - mean, so nothing cancels.
template <typename T>
FT_INLINE Moments MomentsOf(const T* x, int64_t n, float eps) {
  float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += Load(x[i]);
  const float mean = sum / static_cast<float>(n);
  float squares = 0.0f;
#pragma omp simd reduction(+ : squares)
  for (int64_t i = 0; i < n; ++i) squares += (Load(x[i]) - mean) * (Load(x[i]) - mean);
  return {mean, 1.0f / __builtin_sqrtf(squares / static_cast<float>(n) + eps)};
}

template <typename T>
FT_INLINE float InverseRms(const T* x, int64_t n, float eps) {
  float squares = 0.0f;
#pragma omp simd reduction(+ : squares)
  for (int64_t i = 0; i < n; ++i) squares += Load(x[i]) * Load(x[i]);
  return 1.0f / __builtin_sqrtf(squares / static_cast<float>(n) + eps);
}

FT_INLINE void Clear(float* values, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) values[i] = 0.0f;
}

template <typename T>
void LayerNorm(const NormArgs& args, int64_t begin, int64_t end) {
  const int64_t n = args.columns;
  const T* weight = static_cast<const T*>(args.weight);
  const T* bias = static_cast<const T*>(args.bias);
  for (int64_t row = begin; row < end; ++row) {
    const T* x = static_cast<const T*>(args.x) + row * n;
    T* result = static_cast<T*>(args.result) + row * n;
    const Moments moments = MomentsOf(x, n, args.eps);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      Store(Fma((Load(x[i]) - moments.mean) * moments.scale, Load(weight[i]), Load(bias[i])), result[i]);
    }
  }
}

template <typename T>
void RmsNorm(const NormArgs& args, int64_t begin, int64_t end) {
  const int64_t n = args.columns;
  const T* weight = static_cast<const T*>(args.weight);
  for (int64_t row = begin; row < end; ++row) {
    const T* x = static_cast<const T*>(args.x) + row * n;
    T* result = static_cast<T*>(args.result) + row * n;
    const float scale = InverseRms(x, n, args.eps);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) Store(Load(x[i]) * scale * Load(weight[i]), result[i]);
  }
}

// With h = (x - mean) * scale and g = dy * weight: dx = scale * (g - mean(g) - h * mean(g h)). Here and below
// `weight` is read through args: a copy of the pointer changes the order in which the compiler sums, and with
// it bits.
template <typename T>
void LayerNormGrad(const NormGradArgs& args, float* dweight, float* dbias, int64_t begin, int64_t end) {
  const int64_t n = args.columns;
  Clear(dweight, n);
  Clear(dbias, n);
  for (int64_t row = begin; row < end; ++row) {
    const T* x = static_cast<const T*>(args.x) + row * n;
    const T* dy = static_cast<const T*>(args.dy) + row * n;
    T* dx = static_cast<T*>(args.dx) + row * n;
    const Moments moments = MomentsOf(x, n, args.eps);
    float sum_g = 0.0f, sum_gh = 0.0f;
#pragma omp simd reduction(+ : sum_g, sum_gh)
    for (int64_t i = 0; i < n; ++i) {
      const float h = (Load(x[i]) - moments.mean) * moments.scale;
      const float g = Load(dy[i]) * Load(static_cast<const T*>(args.weight)[i]);
      sum_g += g;
      sum_gh += g * h;
      dweight[i] += Load(dy[i]) * h;
      dbias[i] += Load(dy[i]);
    }
    const float mean_g = sum_g / static_cast<float>(n);
    const float mean_gh = sum_gh / static_cast<float>(n);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      const float h = (Load(x[i]) - moments.mean) * moments.scale;
      Store(
          moments.scale * (Load(dy[i]) * Load(static_cast<const T*>(args.weight)[i]) - mean_g - h * mean_gh),
          dx[i]);
    }
  }
}

// With h = x * scale and g = dy * weight: dx = scale * (g - h * mean(g h)).
template <typename T>
void RmsNormGrad(const NormGradArgs& args, float* dweight, int64_t begin, int64_t end) {
  const int64_t n = args.columns;
  Clear(dweight, n);
  for (int64_t row = begin; row < end; ++row) {
    const T* x = static_cast<const T*>(args.x) + row * n;
    const T* dy = static_cast<const T*>(args.dy) + row * n;
    T* dx = static_cast<T*>(args.dx) + row * n;
    const float scale = InverseRms(x, n, args.eps);
    float sum_gh = 0.0f;
#pragma omp simd reduction(+ : sum_gh)
    for (int64_t i = 0; i < n; ++i) {
      const float h = Load(x[i]) * scale;
      sum_gh += Load(dy[i]) * Load(static_cast<const T*>(args.weight)[i]) * h;
      dweight[i] += Load(dy[i]) * h;
    }
    const float mean_gh = sum_gh / static_cast<float>(n);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      Store(
          scale * (Load(dy[i]) * Load(static_cast<const T*>(args.weight)[i]) - Load(x[i]) * scale * mean_gh),
          dx[i]);
    }
  }
}

}  // namespace

extern const NormRoutines kNorm;
const NormRoutines kNorm = {FT_EVERY_FLOAT(LayerNorm), FT_EVERY_FLOAT(RmsNorm), FT_EVERY_FLOAT(LayerNormGrad),
                            FT_EVERY_FLOAT(RmsNormGrad)};

}  // namespace ft::cpu::FT_ISA
