// Kernels of the host's processors, for devices that compute elsewhere.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/device/command.h"
#include "runtime/device/kernel.h"

namespace ft {

class HostKernels {
 public:
  virtual ~HostKernels() = default;

  // Run computes on the thread that calls it and on a team of its own, and does not fail. Errors: those of
  // Device::CreateKernel.
  virtual absl::StatusOr<std::unique_ptr<HostTask>> Create(const std::string& name,
                                                           const KernelOperands& operands,
                                                           const KernelAttributes& attributes) = 0;
};

}  // namespace ft
