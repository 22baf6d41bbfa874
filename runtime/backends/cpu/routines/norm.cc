#include "runtime/backends/cpu/routines/norm.h"

#include "runtime/backends/cpu/routines/half.h"

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
// Rows add to dweight and dbias.
template <typename T>
FT_INLINE void LayerNormGradRows(const NormGradArgs& args, float* dweight, float* dbias, int64_t begin,
                                 int64_t end) {
  const int64_t n = args.columns;
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
FT_INLINE void RmsNormGradRows(const NormGradArgs& args, float* dweight, int64_t begin, int64_t end) {
  const int64_t n = args.columns;
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

template <typename T>
void LayerNormGrad(const NormGradArgs& args, float* dweight, float* dbias, int64_t begin, int64_t end) {
  Clear(dweight, args.columns);
  Clear(dbias, args.columns);
  LayerNormGradRows<T>(args, dweight, dbias, begin, end);
}

template <typename T>
void RmsNormGrad(const NormGradArgs& args, float* dweight, int64_t begin, int64_t end) {
  Clear(dweight, args.columns);
  RmsNormGradRows<T>(args, dweight, begin, end);
}

// Rows of f16 of at most so many columns are converted to f32 first, on the stack: the compiler's vectoriser
// knows no conversion instruction, and one by one (element.h) they would take 3 to 6 times as long.
constexpr int64_t kConverted = 8192;

struct Row {
  alignas(64) float values[kConverted];

  inline __attribute__((always_inline)) const float* Read(const void* x, int64_t row, int64_t n) {
    LoadFloats(static_cast<const Float16*>(x) + row * n, n, values);
    return values;
  }
  inline __attribute__((always_inline)) void Write(void* x, int64_t row, int64_t n) const {
    StoreFloats(values, n, static_cast<Float16*>(x) + row * n);
  }
};

void LayerNormF16(const NormArgs& args, int64_t begin, int64_t end) {
  const int64_t n = args.columns;
  if (n > kConverted) return LayerNorm<Float16>(args, begin, end);
  Row weight, bias, x, result;
  const NormArgs of_row = {
      x.values, weight.Read(args.weight, 0, n), bias.Read(args.bias, 0, n), result.values, n, args.eps};
  for (int64_t row = begin; row < end; ++row) {
    x.Read(args.x, row, n);
    LayerNorm<float>(of_row, 0, 1);
    result.Write(args.result, row, n);
  }
}

void RmsNormF16(const NormArgs& args, int64_t begin, int64_t end) {
  const int64_t n = args.columns;
  if (n > kConverted) return RmsNorm<Float16>(args, begin, end);
  Row weight, x, result;
  const NormArgs of_row = {x.values, weight.Read(args.weight, 0, n), nullptr, result.values, n, args.eps};
  for (int64_t row = begin; row < end; ++row) {
    x.Read(args.x, row, n);
    RmsNorm<float>(of_row, 0, 1);
    result.Write(args.result, row, n);
  }
}

// grad_row(args of one row in f32) adds that row's sums.
template <typename F>
FT_INLINE void ForConvertedRows(const NormGradArgs& args, int64_t begin, int64_t end, const F& grad_row) {
  const int64_t n = args.columns;
  Row weight, x, dy, dx;
  const NormGradArgs of_row = {dy.values, x.values, weight.Read(args.weight, 0, n), dx.values, n, args.eps};
  for (int64_t row = begin; row < end; ++row) {
    x.Read(args.x, row, n);
    dy.Read(args.dy, row, n);
    grad_row(of_row);
    dx.Write(args.dx, row, n);
  }
}

void LayerNormGradF16(const NormGradArgs& args, float* dweight, float* dbias, int64_t begin, int64_t end) {
  if (args.columns > kConverted) return LayerNormGrad<Float16>(args, dweight, dbias, begin, end);
  Clear(dweight, args.columns);
  Clear(dbias, args.columns);
  ForConvertedRows(args, begin, end, [=](const NormGradArgs& row) __attribute__((always_inline)) {
    LayerNormGradRows<float>(row, dweight, dbias, 0, 1);
  });
}

void RmsNormGradF16(const NormGradArgs& args, float* dweight, int64_t begin, int64_t end) {
  if (args.columns > kConverted) return RmsNormGrad<Float16>(args, dweight, begin, end);
  Clear(dweight, args.columns);
  ForConvertedRows(args, begin, end, [=](const NormGradArgs& row) __attribute__((always_inline)) {
    RmsNormGradRows<float>(row, dweight, 0, 1);
  });
}

}  // namespace

extern const NormRoutines kNorm;
const NormRoutines kNorm = {{LayerNorm<float>, LayerNorm<BFloat16>, LayerNormF16},
                            {RmsNorm<float>, RmsNorm<BFloat16>, RmsNormF16},
                            {LayerNormGrad<float>, LayerNormGrad<BFloat16>, LayerNormGradF16},
                            {RmsNormGrad<float>, RmsNormGrad<BFloat16>, RmsNormGradF16}};

}  // namespace ft::cpu::FT_ISA
