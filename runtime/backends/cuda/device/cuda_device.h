// A GPU as a device, over the platform's driver and libraries.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/backends/cuda/device/device_state.h"
#include "runtime/backends/cuda/device/open_cuda_device.h"
#include "runtime/backends/cuda/kernel_base.h"
#include "runtime/backends/cuda/platform.h"
#include "runtime/device/device.h"

namespace ft::cuda {

class CudaDevice final : public Device {
 public:
  // `platform` as OpenPlatform gives it, by the calling thread. Errors: FailedPrecondition when the device
  // does not run the code that this program holds.
  static absl::StatusOr<std::unique_ptr<CudaDevice>> Create(Platform platform, KernelTable kernels,
                                                            const CudaDeviceOptions& options);

  std::string_view name() const override { return "cuda"; }
  // "CUDA device 0: NVIDIA H200, compute capability 9.0, 132 multiprocessors, 139.8 GiB; driver for
  // CUDA 13.0".
  std::string description() const override;
  bool host_accessible() const override { return false; }
  absl::StatusOr<std::unique_ptr<Memory>> Allocate(uint64_t bytes) override;
  uint64_t mappable_page_bytes() override;
  absl::StatusOr<std::unique_ptr<Memory>> AllocateMappable(uint64_t bytes) override;
  absl::StatusOr<std::unique_ptr<Memory>> AllocateHost(uint64_t bytes) override;
  absl::StatusOr<std::unique_ptr<Stream>> CreateStream(std::string name, size_t max_enqueued) override;
  std::unique_ptr<Event> CreateEvent() override;
  absl::StatusOr<std::unique_ptr<Kernel>> CreateKernel(const std::string& name,
                                                       const KernelOperands& operands,
                                                       const KernelAttributes& attributes) override;
  absl::StatusOr<std::unique_ptr<Kernel>> CreateHostKernel(const std::string& name,
                                                           const KernelOperands& operands,
                                                           const KernelAttributes& attributes) override;
  absl::Status Write(void* device_data, const void* host_data, uint64_t bytes) override;
  absl::Status Read(void* host_data, const void* device_data, uint64_t bytes) override;
  bool records() const override { return true; }
  // A failure is also the device's: nothing runs after it.
  absl::StatusOr<std::unique_ptr<Recording>> Record(Stream& origin,
                                                    absl::FunctionRef<void()> enqueue) override;
  double peak_flops(DType dtype) const override;
  uint64_t memory_bytes() const override { return platform_.properties.total_bytes; }
  double utilization_percent() override;
  uint64_t used_bytes() override;
  std::vector<std::string> notes() const override { return notes_; }
  absl::Status status() const override { return state_.failure.status(); }
  // Work that CUDA already has goes on: collectives that hang are ended by their communicators.
  void Cancel(const absl::Status& reason) override { state_.failure.Set(reason).IgnoreError(); }

  const DeviceProperties& properties() const { return platform_.properties; }
  int number() const { return platform_.device; }

 private:
  CudaDevice(Platform platform, KernelTable kernels, const CudaDeviceOptions& options);
  absl::Status Probe();

  Platform platform_;
  const KernelTable kernels_;
  const CudaDeviceOptions options_;
  DeviceState state_;
  std::vector<std::string> notes_;
};

}  // namespace ft::cuda
