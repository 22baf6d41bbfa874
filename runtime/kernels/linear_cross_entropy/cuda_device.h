// Softmax cross entropy of rows of logits, and what turns row losses and products of them into results.
#pragma once

#include <cstdint>

#include "runtime/backends/cuda/device_code/launch.h"
#include "runtime/base/dtype.h"

namespace ft::cuda {

// Found on the device before the rows: rows whose target is negative are left out.
struct LossScale {
  float rows;       // what gradients of rows are multiplied with
  float rest;       // what is then missing: a factor for sums of them
  int32_t counted;  // rows that are not left out
};

struct LossScaleArgs {
  const int32_t* targets;
  int rows;
  float dloss;          // upstream gradient of the mean,
  const float* factor;  // times this where it is not null
  // Gradients of rows are kept in f16: `rows` is a power of two with which they use its range, `rest` has the
  // scale. Otherwise `rows` is the whole scale.
  bool narrow;
  LossScale* result;
};
int FindLossScale(const LossScaleArgs& args, StreamHandle stream);

struct RowLossArgs {
  const void* logits;  // [rows, columns], rows `stride` elements apart
  DType dtype;
  int rows, columns;
  int64_t stride;
  // A negative target leaves the row out: loss and gradient are 0. One of `columns` or more makes the loss
  // NaN.
  const int32_t* targets;
  float* losses;   // [rows]: logsumexp(logits) - logits[target]; null for none
  void* gradient;  // scale->rows * (softmax(logits) - onehot(target)), laid out as the logits, and may be
                   // the logits; null for none
  const LossScale* scale;  // for gradients
};
int RowLosses(const RowLossArgs& args, StreamHandle stream);

// result = the sum of losses[rows] over scale.counted, 0 when that is 0.
int MeanLoss(const float* losses, int rows, const LossScale* scale, float* result, StreamHandle stream);

// result = scale->rest * sums + (accumulate ? result : 0), rounded to `dtype`. `sums` is 16-byte aligned.
struct FinishGradientArgs {
  const float* sums;
  int64_t elements;
  const LossScale* scale;
  bool accumulate;
  void* result;
  DType dtype;
};
int FinishGradient(const FinishGradientArgs& args, StreamHandle stream);

}  // namespace ft::cuda
