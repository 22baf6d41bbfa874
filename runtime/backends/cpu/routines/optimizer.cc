#include "runtime/backends/cpu/routines/optimizer.h"

#include "runtime/backends/cpu/routines/vector_math.h"

namespace ft::cpu::FT_ISA {
namespace {

constexpr int kLanes = 32;

double BlockSumSquares(const float* x, int64_t n) {
  double lanes[kLanes] = {};
  const int64_t whole = n / kLanes * kLanes;
  for (int64_t i = 0; i < whole; i += kLanes) {
#pragma omp simd
    for (int lane = 0; lane < kLanes; ++lane) {
      const double value = x[i + lane];  // its square has at most 48 bits: exact
      lanes[lane] += value * value;
    }
  }
  for (int64_t i = whole; i < n; ++i) {
    const double value = x[i];
    lanes[i - whole] += value * value;
  }
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int lane = 0; lane < width; ++lane) lanes[lane] += lanes[lane + width];
  }
  return lanes[0];
}

void Fill(float* x, float value, int64_t begin, int64_t end) {
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) x[i] = value;
}

}  // namespace

extern const OptimizerRoutines kOptimizer;
const OptimizerRoutines kOptimizer = {BlockSumSquares, Fill};

}  // namespace ft::cpu::FT_ISA
