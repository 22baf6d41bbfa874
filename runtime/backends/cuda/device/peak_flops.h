// What GPUs can do by their data sheets, for the fraction of it that a run reaches (MFU).
#pragma once

#include <string_view>

#include "runtime/base/dtype.h"

namespace ft::cuda {

// FLOP/s of matrix products without sparsity, sums in fp32, of the device that CUDA calls `name`; 0 for one
// that is not in the table. fp32: on tensor cores (TF32) if allowed, else without them.
double PeakFlops(std::string_view name, DType dtype, bool allow_tf32);

}  // namespace ft::cuda
