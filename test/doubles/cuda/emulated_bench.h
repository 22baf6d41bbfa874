// Emulated CUDA as a bench of the conformance cases: makers and device code alone, without device or streams.
#pragma once

#include <string>
#include <vector>

#include "runtime/backends/cuda/kernel_base.h"
#include "test/conformance/bench.h"
#include "test/doubles/cuda/reference_products.h"

namespace ft::cuda::emulation {

class EmulatedBench final : public conformance::Bench {
 public:
  // `fuses`: products have epilogues (reference_products.h).
  explicit EmulatedBench(bool fuses = false);

  DeviceClass device_class() const override { return DeviceClass::kCuda; }
  uint64_t guard_bytes() const override;
  bool Has(const std::string& op) const override { return kernels_.Find(op) != nullptr; }
  absl::StatusOr<std::unique_ptr<Memory>> Allocate(uint64_t bytes, size_t alignment) override;
  absl::Status Write(void* device_data, const void* host_data, uint64_t bytes) override;
  absl::Status Fill(void* device_data, std::byte value, uint64_t bytes) override;
  absl::Status Read(void* host_data, const void* device_data, uint64_t bytes) override;
  absl::StatusOr<std::unique_ptr<Kernel>> Create(const std::string& op, const KernelOperands& operands,
                                                 const KernelAttributes& attributes) override;
  absl::Status Run(Kernel& kernel) override;

 private:
  KernelTable kernels_;
  ReferenceProducts products_;
  DeviceProperties properties_;
  std::vector<std::string> notes_;
};

}  // namespace ft::cuda::emulation
