#include "test/conformance/cpu_bench.h"

#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/backends/cpu/cpu_kernel.h"

namespace ft::conformance {
namespace {

class VectorMemory final : public Memory {
 public:
  VectorMemory(uint64_t bytes, size_t alignment)
      : bytes_(bytes), alignment_(alignment), storage_(bytes + alignment) {}
  void* data() const override {
    const uintptr_t address = reinterpret_cast<uintptr_t>(storage_.data());
    return reinterpret_cast<void*>((address + alignment_ - 1) / alignment_ * alignment_);
  }
  uint64_t bytes() const override { return bytes_; }

 private:
  uint64_t bytes_;
  size_t alignment_;
  std::vector<std::byte> storage_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Memory>> CpuBench::Allocate(uint64_t bytes, size_t alignment) {
  return std::make_unique<VectorMemory>(bytes, alignment);
}

absl::Status CpuBench::Write(void* device_data, const void* host_data, uint64_t bytes) {
  std::memcpy(device_data, host_data, bytes);
  return absl::OkStatus();
}

absl::Status CpuBench::Fill(void* device_data, std::byte value, uint64_t bytes) {
  std::memset(device_data, std::to_integer<int>(value), bytes);
  return absl::OkStatus();
}

absl::Status CpuBench::Read(void* host_data, const void* device_data, uint64_t bytes) {
  std::memcpy(host_data, device_data, bytes);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Kernel>> CpuBench::Create(const std::string& op,
                                                         const KernelOperands& operands,
                                                         const KernelAttributes& attributes) {
  const KernelFactory factory = registry_.Find(op);
  if (factory == nullptr) return absl::NotFoundError(absl::StrCat("the cpu has no kernel '", op, "'"));
  return factory(operands, attributes, {num_threads_});
}

absl::Status CpuBench::Run(Kernel& kernel) {
  static_cast<CpuKernel&>(kernel).Run();
  return absl::OkStatus();
}

}  // namespace ft::conformance
