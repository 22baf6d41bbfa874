// Ranges of NVTX, which Nsight Systems shows beside the kernels.
#pragma once

#include <memory>

#include "runtime/backends/cuda/platform.h"

namespace ft::cuda {

// Null unless a profiler has put itself into this process: then nothing is spent on ranges.
std::unique_ptr<ProfilerRanges> CreateNvtxRanges();

}  // namespace ft::cuda
