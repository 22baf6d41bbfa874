// The program ftexec, but for where GPUs and NCCL come from: a program links ft_cuda_platform, an emulation
// of it, or ft_cuda_off.
#pragma once

#include "tools/ftexec/rank_device.h"

namespace ft {

// Returns the exit status.
int Main(int argc, char** argv, const NcclSource& load_nccl);

}  // namespace ft
