// How kernels run bodies of clusters: the kernel "cluster", for itself and for kernels that run one on what
// they have made.
#pragma once

#include "runtime/backends/cuda/kernel_base.h"
#include "runtime/kernels/cluster/cuda_device.h"
#include "runtime/kernels/cluster/operands.h"

namespace ft::cuda {

// What the walker is given.
ClusterArgs ClusterArgsOf(const ClusterOperands& operands);

// The code of an instruction's cluster, loaded once for all kernels; null where the plan has none, or the
// platform runs none.
absl::StatusOr<std::shared_ptr<const LoadedCode>> CodeOf(const KernelContext& context);

// Of the body that the attributes have, on the operands of the context; both are looked at now.
KernelOr MakeCluster(const KernelContext& context);

}  // namespace ft::cuda
