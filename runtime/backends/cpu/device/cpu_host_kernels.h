// The CPU's kernels, for other devices of this host.
#pragma once

#include "runtime/device/host_kernels.h"

namespace ft {

class CpuHostKernels final : public HostKernels {
 public:
  // `kernels`, which may be filled later, must outlive this.
  CpuHostKernels(const KernelRegistry& kernels, const KernelEnvironment& environment)
      : kernels_(kernels), environment_(environment) {}

  absl::StatusOr<std::unique_ptr<HostTask>> Create(const std::string& name, const KernelOperands& operands,
                                                   const KernelAttributes& attributes) override;

 private:
  const KernelRegistry& kernels_;
  const KernelEnvironment environment_;
};

}  // namespace ft
