// Kernels on slices of buffers, on every instruction set, for tests of single bits.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "runtime/backends/cpu/cpu_kernel.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/plan/testing/update_body.h"
#include "test/conformance/case.h"
#include "test/conformance/exact_kernels.h"

namespace ft {

inline constexpr int64_t kElements = 37 * 1024;

class CpuExact : public testing::Test {
 protected:
  struct Backend {
    cpu::Isa isa;
    KernelRegistry registry;
  };

  void SetUp() override {
    for (cpu::Isa isa : cpu::UsableIsas()) {
      backends_.push_back({isa, {}});
      RegisterCpuKernels(backends_.back().registry, isa);
    }
    std::mt19937 generator(5);
    std::normal_distribution<float> normal;
    for (auto* values : {&gradient_, &parameter_, &moment_}) {
      values->resize(kElements);
      for (float& value : *values) value = normal(generator);
    }
    square_.resize(kElements);
    for (float& value : square_) value = std::abs(normal(generator)) * 1e-3f;
  }

  static Tensor Slice(std::vector<float>& values, int64_t begin, int64_t end,
                      absl::Span<const ParameterRange> parameters = {}) {
    return {values.data() + begin, DType::kF32, 1, {end - begin}, begin, parameters};
  }

  template <typename T>
  static Tensor Whole(std::vector<T>& values, DType dtype) {
    return {values.data(), dtype, 1, {static_cast<int64_t>(values.size())}};
  }

  static Tensor Scalar(float& value) { return {&value}; }
  static Tensor Scalar(int64_t& value) { return {&value, DType::kI64}; }

  static void RunKernel(const KernelRegistry& registry, const char* name, const KernelOperands& operands,
                        const KernelAttributes& attributes, int threads) {
    auto kernel = registry.Find(name)(operands, attributes, {threads});
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    static_cast<CpuKernel&>(**kernel).Run();
    KernelsRun().insert(name);
  }

  // Attributes of "update" with AdamW.
  static KernelAttributes UpdateAttributes(const UpdateTypes& types) {
    KernelAttributes attributes;
    attributes.SetCluster(std::make_shared<const Cluster>(Cluster{AdamwBody(types), {}, nullptr}));
    return attributes;
  }

  // Those of a step of AdamW, without and with weight decay of 0.1.
  static std::vector<float> ScalarsOf(const KernelRegistry& registry, float coefficient, float lr,
                                      int64_t step) {
    std::vector<float> scalars(2 * kAdamwScalars);
    RunKernel(registry, "update_scalars",
              {{Scalar(coefficient), Scalar(lr), Scalar(step)}, {Whole(scalars, DType::kF32)}, {}},
              conformance::Attributes({{"formulas", std::string(kAdamwFormulas)}, {"weight_decay", 0.1}}), 1);
    return scalars;
  }

  std::vector<Backend> backends_;
  std::vector<float> gradient_, parameter_, moment_, square_;
};

// Cuts of kElements at multiples of 1024; the first is the whole.
inline const std::vector<std::vector<int64_t>> kCuts = {{0, kElements},
                                                        {0, 1024, kElements},
                                                        {0, 12 * 1024, 13 * 1024, 36 * 1024, kElements},
                                                        {0, 19 * 1024, kElements}};

}  // namespace ft
