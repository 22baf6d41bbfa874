#include "test/conformance/device_bench.h"

#include <algorithm>
#include <utility>

#include "runtime/base/status_macros.h"

namespace ft::conformance {

absl::StatusOr<DeviceBench> DeviceBench::Create(Device& device, DeviceClass device_class) {
  FT_ASSIGN_OR_RETURN(std::unique_ptr<Stream> stream, device.CreateStream("compute", 1));
  return DeviceBench(device, device_class, std::move(stream));
}

absl::StatusOr<std::unique_ptr<Memory>> DeviceBench::Allocate(uint64_t bytes, size_t alignment) {
  return device_->Allocate(std::max<uint64_t>(bytes, 1));
}

absl::Status DeviceBench::Write(void* device_data, const void* host_data, uint64_t bytes) {
  return device_->Write(device_data, host_data, bytes);
}

absl::Status DeviceBench::Read(void* host_data, const void* device_data, uint64_t bytes) {
  return device_->Read(host_data, device_data, bytes);
}

absl::StatusOr<std::unique_ptr<Kernel>> DeviceBench::Create(const std::string& op,
                                                            const KernelOperands& operands,
                                                            const KernelAttributes& attributes) {
  return device_->CreateKernel(op, operands, attributes);
}

absl::Status DeviceBench::Run(Kernel& kernel) {
  info_.title = "conformance";
  const Command command = Command::Launch(&kernel, &info_);
  stream_->Enqueue(absl::MakeConstSpan(&command, 1));
  stream_->Synchronize();
  return device_->status();
}

}  // namespace ft::conformance
