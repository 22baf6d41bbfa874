// Strided copies (runtime/device/strided_copy.h) on the device.
#pragma once

#include "runtime/backends/cuda/kernel_base.h"
#include "runtime/device/strided_copy.h"

namespace ft::cuda {

KernelOr MakeStridedCopy(const StridedCopy& copy);

}  // namespace ft::cuda
