// The CPU backend's kernels as a bench, run on the calling thread.
#pragma once

#include "test/conformance/bench.h"

namespace ft::conformance {

class CpuBench final : public Bench {
 public:
  // `registry` holds kernels that are CpuKernels; it outlives the bench.
  CpuBench(const KernelRegistry& registry, int num_threads)
      : registry_(registry), num_threads_(num_threads) {}

  DeviceClass device_class() const override { return DeviceClass::kCpu; }
  bool Has(const std::string& op) const override { return registry_.Find(op) != nullptr; }
  absl::StatusOr<std::unique_ptr<Memory>> Allocate(uint64_t bytes, size_t alignment) override;
  absl::Status Write(void* device_data, const void* host_data, uint64_t bytes) override;
  absl::Status Fill(void* device_data, std::byte value, uint64_t bytes) override;
  absl::Status Read(void* host_data, const void* device_data, uint64_t bytes) override;
  absl::StatusOr<std::unique_ptr<Kernel>> Create(const std::string& op, const KernelOperands& operands,
                                                 const KernelAttributes& attributes) override;
  absl::Status Run(Kernel& kernel) override;

 private:
  const KernelRegistry& registry_;
  int num_threads_;
};

}  // namespace ft::conformance
