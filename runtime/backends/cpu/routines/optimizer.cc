#include "runtime/backends/cpu/routines/optimizer.h"

#include "runtime/backends/cpu/routines/vector_math.h"

namespace ft::cpu::FT_ISA {
namespace {

// In the order of torch.optim.AdamW (decoupled) and torch.optim.Adam, each operation rounded by itself (no
// FMA), hence the same bits everywhere.
template <bool kDecoupled>
void Adam(const AdamArgs& args, const AdamFactors& factors, int64_t begin, int64_t end) {
  const AdamFactors f = factors;
  const float* gradient = args.gradient;
  float* parameter = args.parameter;
  float* exp_avg = args.exp_avg;
  float* exp_avg_sq = args.exp_avg_sq;
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) {
    const float clipped = gradient[i] * f.clip;
    const float g = kDecoupled ? clipped : clipped + f.decay * parameter[i];
    const float decayed = kDecoupled ? parameter[i] * f.decay : parameter[i];
    const float m = exp_avg[i] + (g - exp_avg[i]) * f.one_minus_beta1;
    const float v = exp_avg_sq[i] * f.beta2 + g * g * f.one_minus_beta2;
    const float denominator = __builtin_sqrtf(v) / f.sqrt_correction2 + f.eps;
    exp_avg[i] = m;
    exp_avg_sq[i] = v;
    parameter[i] = decayed - f.step_size * (m / denominator);
  }
}

// In the order of torch.optim.SGD with dampening 0; the first step's buffer is the gradient, as that of a
// buffer of 0.
template <bool kMomentum, bool kNesterov>
void Sgd(const SgdArgs& args, const SgdFactors& factors, int64_t begin, int64_t end) {
  const SgdFactors f = factors;
  const float* gradient = args.gradient;
  float* parameter = args.parameter;
  float* buffer = args.buffer;
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) {
    const float g = gradient[i] * f.clip + f.decay * parameter[i];
    float step = g;
    if constexpr (kMomentum) {
      const float b = f.momentum * buffer[i] + g;
      buffer[i] = b;
      step = kNesterov ? g + f.momentum * b : b;
    }
    parameter[i] = parameter[i] - f.lr * step;
  }
}

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
const OptimizerRoutines kOptimizer = {
    Adam<true>, Adam<false>, Sgd<false, false>, Sgd<true, false>, Sgd<true, true>, BlockSumSquares, Fill};

}  // namespace ft::cpu::FT_ISA
