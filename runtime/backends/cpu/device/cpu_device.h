// The CPU as a device: streams are threads, an arena is one mapping.
#pragma once

#include <memory>

#include "runtime/backends/cpu/device/cpu_stream.h"
#include "runtime/device/device.h"

namespace ft {

struct CpuDeviceOptions {
  int num_threads = 1;  // that a kernel's parallel loops may use
  // Whether there are cores for threads that wait: then they spin for a short while before they sleep.
  bool may_spin = false;
};

class CpuDevice final : public Device {
 public:
  // `kernels` must outlive the device.
  CpuDevice(const KernelRegistry& kernels, const CpuDeviceOptions& options)
      : kernels_(kernels), options_(options) {}

  std::string_view name() const override { return "cpu"; }
  bool host_accessible() const override { return true; }
  absl::StatusOr<std::unique_ptr<Memory>> Allocate(uint64_t bytes) override;
  // A second arena like the first: here the host is the device.
  absl::StatusOr<std::unique_ptr<Memory>> AllocateHost(uint64_t bytes) override { return Allocate(bytes); }
  absl::StatusOr<std::unique_ptr<Stream>> CreateStream(std::string name, size_t max_enqueued) override;
  std::unique_ptr<Event> CreateEvent() override;
  absl::StatusOr<std::unique_ptr<Kernel>> CreateKernel(const std::string& name,
                                                       const KernelOperands& operands,
                                                       const KernelAttributes& attributes) override;
  // Here too the host is the device.
  absl::StatusOr<std::unique_ptr<Kernel>> CreateHostKernel(const std::string& name,
                                                           const KernelOperands& operands,
                                                           const KernelAttributes& attributes) override {
    return CreateKernel(name, operands, attributes);
  }
  absl::Status Write(void* device_data, const void* host_data, uint64_t bytes) override;
  absl::Status Read(void* host_data, const void* device_data, uint64_t bytes) override;
  absl::Status status() const override { return failure_.status(); }
  void Cancel(const absl::Status& reason) override { failure_.Set(reason).IgnoreError(); }

 private:
  const KernelRegistry& kernels_;
  const CpuDeviceOptions options_;
  FirstFailure failure_;
};

}  // namespace ft
