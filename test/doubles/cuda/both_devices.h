// For tests: a kernel through the emulation, and the same one on the CPU.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/backends/cpu/cpu_kernel.h"
#include "runtime/backends/cpu/isa.h"
#include "runtime/backends/cpu/register.h"
#include "test/doubles/cuda/emulated_bench.h"

namespace ft::cuda::emulation {

class BothDevices {
 protected:
  // Emulated device memory is host memory.
  void RunKernel(const std::string& op, const KernelOperands& operands,
                 const KernelAttributes& attributes = {}) {
    const auto kernel = bench_.Create(op, operands, attributes);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    const absl::Status status = bench_.Run(**kernel);
    ASSERT_TRUE(status.ok()) << status;
  }

  static void RunOnCpu(const std::string& op, const KernelOperands& operands,
                       const KernelAttributes& attributes = {}) {
    KernelRegistry registry;
    RegisterCpuKernels(registry, cpu::BestIsa());
    const auto kernel = registry.Find(op)(operands, attributes, {});
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    static_cast<CpuKernel&>(**kernel).Run();
  }

  // Elements [begin, end) of a flat buffer.
  template <typename T>
  static Tensor Slice(std::vector<T>& values, int64_t begin, int64_t end, DType dtype,
                      absl::Span<const ParameterRange> parameters = {}) {
    return {values.data() + begin, dtype, 1, {end - begin}, begin, parameters};
  }

  EmulatedBench bench_;
};

}  // namespace ft::cuda::emulation
