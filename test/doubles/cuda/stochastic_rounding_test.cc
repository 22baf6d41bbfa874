// Updates of bf16 weights that have no fp32 master, emulated: the numbers are the CPU's to the bit, rounded
// to nearest or stochastically, however the unit is cut.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "runtime/backends/cpu/cpu_kernel.h"
#include "runtime/backends/cpu/isa.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/base/flat_layout.h"
#include "runtime/base/philox.h"
#include "runtime/base/round_float.h"
#include "runtime/plan/testing/update_body.h"
#include "test/conformance/case.h"
#include "test/doubles/cuda/emulated_bench.h"

namespace ft::cuda::emulation {
namespace {

constexpr int64_t kRoundedElements = 20 * 1024, kSeed = 99, kStep = 3;
const std::vector<ParameterRange> kRoundedParameters = {
    {0, 5001, false, 7}, {6144, 17000, true, 2}, {17408, kRoundedElements, true, 2000}};
const std::vector<std::vector<int64_t>> kRoundedCuts = {
    {0, kRoundedElements}, {0, 1024, kRoundedElements}, {0, 7 * 1024, 9 * 1024, kRoundedElements}};

class Bf16Weights : public testing::Test {
 protected:
  struct Job {
    std::vector<uint16_t> weights;
    std::vector<std::vector<float>> states;

    bool operator==(const Job&) const = default;
  };

  void SetUp() override {
    for (int64_t i = 0; i < kRoundedElements; ++i) gradient_[i] = std::sin(0.37f * static_cast<float>(i));
  }

  static Job Begin() {
    Job job;
    for (int64_t i = 0; i < kRoundedElements; ++i)
      job.weights.push_back(RoundToBF16(std::cos(0.11f * static_cast<float>(i))));
    job.states.assign(2, std::vector<float>(kRoundedElements, 0.25f));
    return job;
  }

  // States of padding are 0, of which updates make 0 in whatever part of it they reach; here they are not.
  static void ClearPadding(Job& job) {
    for (int64_t i = 0; i < kRoundedElements; ++i) {
      bool is_parameter = false;
      for (const ParameterRange& parameter : kRoundedParameters)
        is_parameter = is_parameter || (i >= parameter.begin && i < parameter.end);
      if (!is_parameter)
        for (auto& state : job.states) state[i] = 0;
    }
  }

  KernelOperands Operands(Job& job, int64_t begin, int64_t end, bool stochastic) {
    const int64_t n = end - begin;
    KernelOperands operands = {
        {{gradient_.data() + begin, DType::kF32, 1, {n}, begin},
         {scalars_.data(), DType::kF32, 1, {2 * kAdamwScalars}}},
        {{job.weights.data() + begin, DType::kBF16, 1, {n}, begin, kRoundedParameters}},
        {}};
    for (auto& state : job.states) operands.out.push_back({state.data() + begin, DType::kF32, 1, {n}, begin});
    if (!stochastic) return operands;
    operands.in.insert(operands.in.end(), {{rng_.data(), DType::kI64, 1, {3}}, {&step_, DType::kI64}});
    operands.workspace = {workspace_.get(), DType::kU8, 1, {kWorkspaceBytes}};
    return operands;
  }

  static KernelAttributes Attributes(bool stochastic) {
    KernelAttributes attributes;
    const UpdateTypes types = {.parameter = DType::kBF16, .result = stochastic ? DType::kF32 : DType::kBF16};
    attributes.SetCluster(std::make_shared<const Cluster>(Cluster{AdamwBody(types), {}, nullptr}));
    return attributes;
  }

  absl::Status Step(const KernelOperands& operands, const KernelAttributes& attributes) {
    absl::StatusOr<std::unique_ptr<Kernel>> kernel = bench_.Create("update", operands, attributes);
    return kernel.ok() ? bench_.Run(**kernel) : kernel.status();
  }

  Job OnTheCpu(bool stochastic) {
    KernelRegistry registry;
    RegisterCpuKernels(registry, cpu::BestIsa());
    Job job = Begin();
    const auto kernel =
        registry.Find("update")(Operands(job, 0, kRoundedElements, stochastic), Attributes(stochastic), {1});
    EXPECT_TRUE(kernel.ok()) << kernel.status();
    static_cast<CpuKernel&>(**kernel).Run();
    return job;
  }

  static constexpr int64_t kWorkspaceBytes = kRoundingElements * 4;
  std::unique_ptr<char[]> workspace_ = std::make_unique<char[]>(kWorkspaceBytes);
  EmulatedBench bench_;
  // clip, 1 - lr * decay, step size, root of the second correction; with weight decay.
  std::vector<float> scalars_ = {0.75f, 1.0f, 1e-2f, 0.5f, 0.75f, 0.999f, 1e-2f, 0.5f};
  int64_t step_ = kStep;
  std::vector<int64_t> rng_ = {kSeed, 4, 1};
  std::vector<float> gradient_ = std::vector<float>(kRoundedElements);
};

TEST_F(Bf16Weights, AreTheCpusInEverySlice) {
  for (bool stochastic : {false, true}) {
    Job expected = OnTheCpu(stochastic);
    EXPECT_NE(expected, Begin());
    ClearPadding(expected);
    for (const std::vector<int64_t>& cuts : kRoundedCuts) {
      Job job = Begin();
      for (size_t i = 0; i + 1 < cuts.size(); ++i) {
        const absl::Status status =
            Step(Operands(job, cuts[i], cuts[i + 1], stochastic), Attributes(stochastic));
        ASSERT_TRUE(status.ok()) << status;
      }
      ClearPadding(job);
      EXPECT_EQ(job, expected) << stochastic << " " << cuts.size();
    }
  }
}

// From 1 by an eighth of the gap to the next bf16, which is the scalar reference.
TEST_F(Bf16Weights, FollowTheirNumbers) {
  gradient_.assign(kRoundedElements, -1.0f);
  // The moments become -1 and 1, and the root of the second is a large number beside eps.
  scalars_ = {1.0f, 1.0f, 0x1p-10f, 1.0f, 1.0f, 1.0f, 0x1p-10f, 1.0f};
  Job job;
  job.weights.assign(kRoundedElements, 0x3F80);
  job.states.assign(2, std::vector<float>(kRoundedElements, -1.0f));
  job.states[1].assign(kRoundedElements, 1.0f);
  ASSERT_TRUE(Step(Operands(job, 0, kRoundedElements, true), Attributes(true)).ok());
  double ups = 0, trials = 0;
  for (const ParameterRange& parameter : kRoundedParameters) {
    for (int64_t i = parameter.begin; i < parameter.end; ++i) {
      const int64_t e = i - parameter.begin;
      const uint32_t stream = kFirstRoundingStream + parameter.number;
      const uint32_t word = Philox4x32(kSeed, stream, kStep, static_cast<uint64_t>(e) / 4)[e % 4];
      const uint32_t bits = std::bit_cast<uint32_t>(1.0f + 0x1p-10f);
      const uint16_t rounded = job.weights[i];
      ASSERT_EQ(rounded, (bits + (word >> 16)) >> 16) << i;
      ups += rounded == 0x3F81 ? 1 : 0;
      trials += 1;
    }
  }
  // A binomial number, within four standard deviations.
  EXPECT_NEAR(ups, trials / 8, 4 * std::sqrt(trials * 7 / 64));
}

TEST_F(Bf16Weights, RefuseWhatDoesNotFit) {
  Job job = Begin();
  const auto refused = [&](const KernelOperands& operands, const KernelAttributes& attributes) {
    return Step(operands, attributes).code() == absl::StatusCode::kInvalidArgument;
  };
  EXPECT_TRUE(refused(Operands(job, 0, kRoundedElements, false), Attributes(true)));
  EXPECT_TRUE(refused(Operands(job, 1026, kRoundedElements, true), Attributes(true)));
  KernelOperands other = Operands(job, 0, kRoundedElements, false);
  other.out[0].dtype = DType::kF16;
  EXPECT_TRUE(refused(other, Attributes(false)));
  other = Operands(job, 0, kRoundedElements, true);
  other.out.push_back(other.out[0]);
  EXPECT_TRUE(refused(other, Attributes(true)));
  other = Operands(job, 0, kRoundedElements, true);
  other.workspace.dims[0] -= 4;
  EXPECT_TRUE(refused(other, Attributes(true)));
}

}  // namespace
}  // namespace ft::cuda::emulation
