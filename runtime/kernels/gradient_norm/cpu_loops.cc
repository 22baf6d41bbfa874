#include "runtime/kernels/gradient_norm/cpu_loops.h"

#include "runtime/backends/cpu/simd/vector_math.h"

namespace ft::cpu::FT_ISA {
namespace {

constexpr int kLanes = 32;

double BlockSumSquares(const float* x, int64_t n, float factor) {
  double lanes[kLanes] = {};
  const int64_t whole = n / kLanes * kLanes;
  for (int64_t i = 0; i < whole; i += kLanes) {
#pragma omp simd
    for (int lane = 0; lane < kLanes; ++lane) {
      const double value = x[i + lane] * factor;  // its square has at most 48 bits: exact
      lanes[lane] += value * value;
    }
  }
  for (int64_t i = whole; i < n; ++i) {
    const double value = x[i] * factor;
    lanes[i - whole] += value * value;
  }
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int lane = 0; lane < width; ++lane) lanes[lane] += lanes[lane + width];
  }
  return lanes[0];
}

}  // namespace

extern const GradientNormLoops kGradientNorm;
const GradientNormLoops kGradientNorm = {BlockSumSquares};

}  // namespace ft::cpu::FT_ISA
