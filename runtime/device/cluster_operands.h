// What the kernel "cluster" is given, checked against its body.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/cluster.h"
#include "runtime/device/kernel.h"

namespace ft {

struct ClusterOperands {
  ClusterBody body;
  // Of inputs, outputs, and the partial results of each output over rows.
  std::vector<void*> addresses;
};

// InvalidArgument: no body, operands that are not its inputs and outputs, an output in the place of an input
// that lies otherwise in the space, a workspace that is too small.
absl::StatusOr<ClusterOperands> CheckCluster(const KernelOperands& operands,
                                             const KernelAttributes& attributes);

}  // namespace ft
