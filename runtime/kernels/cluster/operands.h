// What the kernel "cluster" is given, checked against its body.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/cluster.h"
#include "runtime/device/kernel.h"

namespace ft {

struct ClusterOperands {
  ClusterBody body;
  // Of inputs, results, and the partial results of each output over rows; then the streams of Philox that the
  // draws of the body have, as numbers.
  std::vector<void*> addresses;
  uint32_t Stream(uint32_t draw) const;
};

// For code that wants `partial_bytes` of each output over rows; none: as many as the body says.
// InvalidArgument: no body, operands that are not its inputs and outputs, an output in the place of an input
// that lies otherwise in the space, a workspace that is too small, attribute `streams` (1, 2, ...; one for
// each draw) that is none.
absl::StatusOr<ClusterOperands> CheckCluster(const KernelOperands& operands,
                                             const KernelAttributes& attributes,
                                             std::optional<int64_t> partial_bytes = {});

}  // namespace ft
