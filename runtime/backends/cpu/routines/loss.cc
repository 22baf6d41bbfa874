#include "runtime/backends/cpu/routines/loss.h"

#include <math.h>

#include "runtime/backends/cpu/routines/vector_math.h"

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

double RowLoss(const float* logits, int64_t n, int64_t target) {
  if (target < 0 || target >= n) return __builtin_nan("");
  const float maximum = Maximum(logits, n);
  double total = 0.0;
  for (int64_t begin = 0; begin < n; begin += kChunk) {
    const int64_t end = begin + kChunk < n ? begin + kChunk : n;
    float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = begin; i < end; ++i) sum += SoftmaxExp(logits[i] - maximum);
    total += sum;
  }
  return log(total) + maximum - logits[target];
}

double RowLossGrad(const float* logits, int64_t n, int64_t target, float scale, float* result) {
  const bool valid = target >= 0 && target < n;
  const float maximum = Maximum(logits, n);
  const float at_target = valid ? logits[target] : __builtin_nanf("");
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
  if (valid) result[target] -= scale;
  return log(total) + maximum - at_target;
}

}  // namespace

extern const LossRoutines kLoss;
const LossRoutines kLoss = {RowLoss, RowLossGrad};

}  // namespace ft::cpu::FT_ISA
