// Rows that a loss counts.
#pragma once

#include <cstdint>

#include "runtime/backends/cuda/device_code/launch.h"

namespace ft::cuda {

// sum = {loss * n, n}, n the number of targets that are not negative.
int LossCount(const float* loss, const int32_t* targets, int rows, float* sum, StreamHandle stream);

// count = {n, all}; *share = n / all.
int CountTargets(const int32_t* targets, int rows, int all, int64_t* count, float* share,
                 StreamHandle stream);

// count = {n, all}: *factor = all / n, NaN where n is 0; *mean = *loss * *factor.
int CountedMean(const int64_t* count, const float* loss, float* mean, float* factor, StreamHandle stream);

}  // namespace ft::cuda
