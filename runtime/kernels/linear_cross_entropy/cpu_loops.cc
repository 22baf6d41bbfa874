#include "runtime/kernels/linear_cross_entropy/cpu_loops.h"

#include <math.h>

#include "runtime/backends/cpu/simd/vector_math.h"

namespace ft::cpu::FT_ISA {
namespace {

FT_INLINE float Maximum(const float* x, int64_t n) {
  float maximum = -__builtin_inff();
#pragma omp simd reduction(max : maximum)
  for (int64_t i = 0; i < n; ++i) maximum = x[i] > maximum ? x[i] : maximum;
  return maximum;
}

// Sums of at most this many terms are made in f32 before they go to f64: a vocabulary of 10^5 keeps its
// digits.
constexpr int64_t kChunk = 1024;

FT_INLINE double SumOfExponentials(const float* logits, int64_t n, float maximum) {
  double total = 0.0;
  for (int64_t begin = 0; begin < n; begin += kChunk) {
    const int64_t end = begin + kChunk < n ? begin + kChunk : n;
    float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = begin; i < end; ++i) sum += SoftmaxExp(logits[i] - maximum);
    total += sum;
  }
  return total;
}

double RowLoss(const float* logits, int64_t n, int64_t target) {
  if (target < 0) return 0.0;
  if (target >= n) return __builtin_nan("");
  const float maximum = Maximum(logits, n);
  return log(SumOfExponentials(logits, n, maximum)) + maximum - logits[target];
}

// In place of the logits. The exponentials are there until their sum is known.
FT_INLINE double FillGrad(float* logits, int64_t n, float maximum, float scale) {
  double total = 0.0;
  for (int64_t begin = 0; begin < n; begin += kChunk) {
    const int64_t end = begin + kChunk < n ? begin + kChunk : n;
    float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = begin; i < end; ++i) {
      const float e = SoftmaxExp(logits[i] - maximum);
      logits[i] = e;
      sum += e;
    }
    total += sum;
  }
  const float factor = static_cast<float>(scale / total);
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) logits[i] *= factor;
  return total;
}

double RowLossGrad(float* logits, int64_t n, int64_t target, float scale) {
  if (target < 0) {
    for (int64_t i = 0; i < n; ++i) logits[i] = 0.0f;
    return 0.0;
  }
  const bool valid = target < n;
  const float maximum = Maximum(logits, n);
  const float at_target = valid ? logits[target] : __builtin_nanf("");
  const double total = FillGrad(logits, n, maximum, scale);
  if (valid) {
    const float factor = static_cast<float>(scale / total);
    logits[target] = SoftmaxExp(at_target - maximum) * factor - scale;
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
const LossLoops kLoss = {RowLoss, RowLossGrad, PartialGrad};

}  // namespace ft::cpu::FT_ISA
