// Strided copies (runtime/kernels/movement/strided_copy.h) on the device.
#pragma once

#include "runtime/backends/cuda/kernel_base.h"
#include "runtime/kernels/movement/strided_copy.h"

namespace ft::cuda {

KernelOr MakeStridedCopy(const StridedCopy& copy);

}  // namespace ft::cuda
