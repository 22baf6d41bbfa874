// What the kernels of the gradient's norm take. Each is read and checked once, for all devices; errors are
// InvalidArgument.
#pragma once

#include "absl/status/statusor.h"
#include "runtime/device/kernel.h"

namespace ft {

inline constexpr char kSumSquaresKernel[] = "sum_squares", kClipCoefficientKernel[] = "clip_coefficient";
// Of clip_coefficient: its results, and the one among them with which updates begin. Where that is NaN they
// change nothing.
inline constexpr int kClipCoefficientResults = 2, kClipCoefficientResult = 1;

struct SumSquaresOperands {
  Tensor gradient;         // of any type that is computed with; begins with a block
  const int64_t* earlier;  // kAccumulatorWords, or nullptr
  const float* factor;     // of its elements before they are squared, or nullptr
  int64_t* sum;            // kAccumulatorWords
};
// Plans without a factor may leave it out altogether.
absl::StatusOr<SumSquaresOperands> ReadSumSquares(const KernelOperands& operands);

struct ClipCoefficientOperands {
  const int64_t* sum;   // kAccumulatorWords
  const float* loss;    // or nullptr
  const float* scaler;  // of loss scaling, or nullptr
  const float* factor;  // of what is counted, or nullptr
  double max_norm;      // 0: does not clip
  float* norm;
  float* coefficient;
};
// Plans without loss, scaler and factor may leave them out altogether.
absl::StatusOr<ClipCoefficientOperands> ReadClipCoefficient(const KernelOperands& operands,
                                                            const KernelAttributes& attributes);

}  // namespace ft
