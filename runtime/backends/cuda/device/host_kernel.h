// A kernel of the host on a stream of the CUDA device.
#pragma once

#include <memory>

#include "runtime/backends/cuda/device/device_state.h"
#include "runtime/backends/cuda/kernel_base.h"
#include "runtime/device/command.h"

namespace ft::cuda {

class HostKernel final : public CudaKernel {
 public:
  HostKernel(DeviceState& state, std::unique_ptr<HostTask> task);

  // Where the device has failed, CUDA may call what it was given at any time after: it does nothing from here
  // on. One that is running is waited for.
  ~HostKernel() override;

  // What CUDA refuses becomes the device's failure.
  int Launch(StreamHandle stream) override;

 private:
  struct Call;

  DeviceState& state_;
  std::unique_ptr<Call> call_;
};

}  // namespace ft::cuda
