#include "runtime/kernels/cross_entropy/cpu_loops.h"

#include <math.h>

#include "runtime/backends/cpu/simd/element.h"

namespace ft::cpu::FT_ISA {
namespace {

template <typename T>
FT_INLINE float Maximum(const T* x, int64_t n) {
  float maximum = -__builtin_inff();
#pragma omp simd reduction(max : maximum)
  for (int64_t i = 0; i < n; ++i) maximum = Load(x[i]) > maximum ? Load(x[i]) : maximum;
  return maximum;
}

// Sums of at most this many terms are made in f32 before they go to f64: a vocabulary of 10^5 keeps its
// digits.
constexpr int64_t kChunk = 1024;

template <typename T>
FT_INLINE double SumOfExponentials(const T* logits, int64_t n, float maximum) {
  double total = 0.0;
  for (int64_t begin = 0; begin < n; begin += kChunk) {
    const int64_t end = begin + kChunk < n ? begin + kChunk : n;
    float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = begin; i < end; ++i) sum += SoftmaxExp(Load(logits[i]) - maximum);
    total += sum;
  }
  return total;
}

template <typename T>
double RowLoss(const void* x, int64_t n, int64_t target) {
  if (target < 0) return 0.0;
  if (target >= n) return __builtin_nan("");
  const T* logits = static_cast<const T*>(x);
  const float maximum = Maximum(logits, n);
  return log(SumOfExponentials(logits, n, maximum)) + maximum - Load(logits[target]);
}

// The exponentials are kept in the result until their sum is known.
FT_INLINE double FillGrad(const float* logits, int64_t n, float maximum, float scale, float* result) {
  double total = 0.0;
  for (int64_t begin = 0; begin < n; begin += kChunk) {
    const int64_t end = begin + kChunk < n ? begin + kChunk : n;
    float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = begin; i < end; ++i) {
      const float e = SoftmaxExp(logits[i] - maximum);
      result[i] = e;
      sum += e;
    }
    total += sum;
  }
  const float factor = static_cast<float>(scale / total);
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) result[i] *= factor;
  return total;
}

// 16 bits hold no exponentials: they are computed again.
template <typename T>
FT_INLINE double FillGrad(const T* logits, int64_t n, float maximum, float scale, T* result) {
  const double total = SumOfExponentials(logits, n, maximum);
  const float factor = static_cast<float>(scale / total);
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) Store(SoftmaxExp(Load(logits[i]) - maximum) * factor, result[i]);
  return total;
}

template <typename T>
double RowLossGrad(const void* x, int64_t n, int64_t target, float scale, void* gradient) {
  const T* logits = static_cast<const T*>(x);
  T* result = static_cast<T*>(gradient);
  if (target < 0) {
    for (int64_t i = 0; i < n; ++i) Store(0.0f, result[i]);
    return 0.0;
  }
  const bool valid = target < n;
  const float maximum = Maximum(logits, n);
  const float at_target = valid ? Load(logits[target]) : __builtin_nanf("");
  const double total = FillGrad(logits, n, maximum, scale, result);
  if (valid) {
    const float factor = static_cast<float>(scale / total);
    Store(SoftmaxExp(at_target - maximum) * factor - scale, result[target]);
  }
  return log(total) + maximum - at_target;
}

void PartialGrad(float* logits, int64_t begin, int64_t n, int64_t target, float log_sum_exp, float scale) {
  if (target < 0) {
    for (int64_t i = 0; i < n; ++i) logits[i] = 0.0f;
    return;
  }
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) logits[i] = scale * SoftmaxExp(logits[i] - log_sum_exp);
  if (target >= begin && target < begin + n) logits[target - begin] -= scale;
}

}  // namespace

extern const LossLoops kLoss;
const LossLoops kLoss = {FT_EVERY_FLOAT(RowLoss), FT_EVERY_FLOAT(RowLossGrad), PartialGrad};

}  // namespace ft::cpu::FT_ISA
