// Any Device as a bench: its memory, its kernels, one of its streams.
#pragma once

#include "runtime/device/device.h"
#include "test/conformance/bench.h"

namespace ft::conformance {

class DeviceBench final : public Bench {
 public:
  // Errors: those of CreateStream. `device` outlives the bench.
  static absl::StatusOr<DeviceBench> Create(Device& device, DeviceClass device_class);

  DeviceClass device_class() const override { return device_class_; }
  // Creating the kernel says so.
  bool Has(const std::string& op) const override { return true; }
  absl::StatusOr<std::unique_ptr<Memory>> Allocate(uint64_t bytes, size_t alignment) override;
  absl::Status Write(void* device_data, const void* host_data, uint64_t bytes) override;
  absl::Status Read(void* host_data, const void* device_data, uint64_t bytes) override;
  absl::StatusOr<std::unique_ptr<Kernel>> Create(const std::string& op, const KernelOperands& operands,
                                                 const KernelAttributes& attributes) override;
  absl::Status Run(Kernel& kernel) override;

 private:
  DeviceBench(Device& device, DeviceClass device_class, std::unique_ptr<Stream> stream)
      : device_(&device), device_class_(device_class), stream_(std::move(stream)) {}

  Device* device_;
  DeviceClass device_class_;
  std::unique_ptr<Stream> stream_;
  CommandInfo info_;
};

}  // namespace ft::conformance
