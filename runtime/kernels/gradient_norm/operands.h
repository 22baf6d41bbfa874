// What the kernels of the gradient's norm take. Each is read and checked once, for all devices; errors are
// InvalidArgument.
#pragma once

#include "absl/status/statusor.h"
#include "runtime/device/kernel.h"

namespace ft {

struct SumSquaresOperands {
  Tensor gradient;         // of any type that is computed with; begins with a block
  const int64_t* earlier;  // kAccumulatorWords, or nullptr
  int64_t* sum;            // kAccumulatorWords
};
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

struct FoundInfOperands {
  Tensor x;
  const int64_t* rng;  // seed, micro-step, rank
  bool clear;          // else bits are added to those in the bitmap
  int64_t* bitmap;     // kFoundInfWords
  // In a world of one there is nobody else whose gradient it could be: the norm tells all.
  bool looks;
};
absl::StatusOr<FoundInfOperands> ReadFoundInf(const KernelOperands& operands, int world_size);

}  // namespace ft
