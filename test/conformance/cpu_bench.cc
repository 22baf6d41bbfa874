#include "test/conformance/cpu_bench.h"

#include <cstring>
#include <new>

#include "absl/strings/str_cat.h"
#include "runtime/backends/cpu/cpu_kernel.h"

namespace ft::conformance {
namespace {

class AlignedMemory final : public Memory {
 public:
  AlignedMemory(uint64_t bytes, size_t alignment)
      : bytes_(bytes), alignment_{alignment}, data_(operator new(bytes, alignment_)) {}
  ~AlignedMemory() override { operator delete(data_, alignment_); }
  void* data() const override { return data_; }
  uint64_t bytes() const override { return bytes_; }

 private:
  uint64_t bytes_;
  std::align_val_t alignment_;
  void* data_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Memory>> CpuBench::Allocate(uint64_t bytes, size_t alignment) {
  return std::make_unique<AlignedMemory>(bytes, alignment);
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
