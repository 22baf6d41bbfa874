// The kernel "cluster", for itself and for kernels that run one on what they have made.
#pragma once

#include "runtime/backends/cpu/kernel_base.h"

namespace ft::cpu {

// Of the body that the attributes have, on the operands of the context; both are looked at now.
KernelOr MakeCluster(const KernelContext& context);

}  // namespace ft::cpu
