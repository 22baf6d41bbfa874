// Rows that a loss counts.
#pragma once

#include <cstdint>

#include "runtime/backends/cuda/device_code/launch.h"

namespace ft::cuda {

// sum = {loss * n, n}, n the number of targets that are not negative.
int LossCount(const float* loss, const int32_t* targets, int rows, float* sum, StreamHandle stream);

}  // namespace ft::cuda
