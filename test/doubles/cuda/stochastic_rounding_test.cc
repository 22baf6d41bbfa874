// Optimizers on bf16 weights that have no fp32 master, emulated: the numbers are the CPU's to the bit,
// rounded to nearest or stochastically, however the unit is cut; many segments take several launches.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "runtime/backends/cpu/cpu_kernel.h"
#include "runtime/backends/cpu/isa.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/backends/cuda/routines/optimizer.h"
#include "runtime/base/philox.h"
#include "runtime/base/round_float.h"
#include "test/conformance/case.h"
#include "test/doubles/cuda/emulated_bench.h"

namespace ft::cuda::emulation {
namespace {

constexpr int64_t kRoundedElements = 20 * 1024, kSeed = 99, kStep = 3;
const std::vector<int64_t> kSegments = {0, 5001, 0, 6144, 17000, 1, 17408, kRoundedElements, 1};
const std::vector<int64_t> kStreams = {7, 2, 2000};
const std::vector<std::vector<int64_t>> kRoundedCuts = {
    {0, kRoundedElements}, {0, 1024, kRoundedElements}, {0, 7 * 1024, 9 * 1024, kRoundedElements}};

using Entries = std::vector<std::pair<std::string, KernelAttributes::Value>>;

struct Optimizer {
  const char* kernel;
  size_t states;
  Entries entries;
};

Entries SgdEntries(double momentum, double weight_decay, std::vector<int64_t> segments) {
  return {{"momentum", momentum},
          {"nesterov", int64_t{momentum != 0}},
          {"weight_decay", weight_decay},
          {"segments", std::move(segments)}};
}

std::vector<Optimizer> Optimizers() {
  const Entries adam = {
      {"beta1", 0.9}, {"beta2", 0.95}, {"eps", 1e-8}, {"weight_decay", 0.1}, {"segments", kSegments}};
  return {{"adamw", 2, adam},
          {"adam", 2, adam},
          {"sgd", 0, SgdEntries(0, 0.1, kSegments)},
          {"sgd", 1, SgdEntries(0.9, 0.1, kSegments)}};
}

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

  static Job Begin(const Optimizer& optimizer) {
    Job job;
    for (int64_t i = 0; i < kRoundedElements; ++i)
      job.weights.push_back(RoundToBF16(std::cos(0.11f * static_cast<float>(i))));
    job.states.assign(optimizer.states, std::vector<float>(kRoundedElements, 0.25f));
    return job;
  }

  KernelOperands Operands(Job& job, int64_t begin, int64_t end, bool stochastic) {
    const int64_t n = end - begin;
    KernelOperands operands = {{{gradient_.data() + begin, DType::kF32, 1, {n}, begin},
                                {&coefficient_},
                                {&lr_},
                                {&step_, DType::kI64}},
                               {{job.weights.data() + begin, DType::kBF16, 1, {n}, begin}},
                               {}};
    if (stochastic) operands.in.push_back({rng_.data(), DType::kI64, 1, {3}});
    for (auto& state : job.states) operands.out.push_back({state.data() + begin, DType::kF32, 1, {n}, begin});
    return operands;
  }

  static KernelAttributes With(Entries entries, bool stochastic) {
    if (stochastic) entries.emplace_back("stochastic_rounding", kStreams);
    return conformance::Attributes(std::move(entries));
  }

  absl::Status Step(const char* op, const KernelOperands& operands, const KernelAttributes& attributes) {
    absl::StatusOr<std::unique_ptr<Kernel>> kernel = bench_.Create(op, operands, attributes);
    return kernel.ok() ? bench_.Run(**kernel) : kernel.status();
  }

  Job OnTheCpu(const Optimizer& optimizer, bool stochastic) {
    KernelRegistry registry;
    RegisterCpuKernels(registry, cpu::BestIsa());
    Job job = Begin(optimizer);
    const auto kernel = registry.Find(optimizer.kernel)(Operands(job, 0, kRoundedElements, stochastic),
                                                        With(optimizer.entries, stochastic), {1});
    EXPECT_TRUE(kernel.ok()) << kernel.status();
    static_cast<CpuKernel&>(**kernel).Run();
    return job;
  }

  EmulatedBench bench_;
  float coefficient_ = 0.75f, lr_ = 1e-2f;
  int64_t step_ = kStep;
  std::vector<int64_t> rng_ = {kSeed, 4, 1};
  std::vector<float> gradient_ = std::vector<float>(kRoundedElements);
};

TEST_F(Bf16Weights, AreTheCpusInEverySlice) {
  for (const Optimizer& optimizer : Optimizers()) {
    for (bool stochastic : {false, true}) {
      const Job expected = OnTheCpu(optimizer, stochastic);
      EXPECT_NE(expected, Begin(optimizer));
      for (const std::vector<int64_t>& cuts : kRoundedCuts) {
        Job job = Begin(optimizer);
        for (size_t i = 0; i + 1 < cuts.size(); ++i) {
          const KernelOperands operands = Operands(job, cuts[i], cuts[i + 1], stochastic);
          const absl::Status status = Step(optimizer.kernel, operands, With(optimizer.entries, stochastic));
          ASSERT_TRUE(status.ok()) << status;
        }
        EXPECT_EQ(job, expected) << optimizer.kernel << " " << stochastic << " " << cuts.size();
      }
    }
  }
}

// SGD from 1 by an eighth of the gap to the next bf16, which is the scalar reference; unaligned, too.
TEST_F(Bf16Weights, FollowTheirNumbers) {
  const Optimizer sgd = {"sgd", 0, SgdEntries(0, 0, kSegments)};
  gradient_.assign(kRoundedElements, -1.0f);
  coefficient_ = 1.0f;
  lr_ = 0x1p-10f;
  for (const int64_t misaligned : {0, 1}) {
    Job job;
    job.weights.assign(kRoundedElements + misaligned, 0x3F80);
    KernelOperands operands = Operands(job, 0, kRoundedElements, true);
    operands.out[0].data = job.weights.data() + misaligned;
    ASSERT_TRUE(Step(sgd.kernel, operands, With(sgd.entries, true)).ok());
    double ups = 0, trials = 0;
    for (size_t s = 0; s < kStreams.size(); ++s) {
      for (int64_t i = kSegments[3 * s]; i < kSegments[3 * s + 1]; ++i) {
        const int64_t e = i - kSegments[3 * s];
        const uint32_t stream = kFirstRoundingStream + static_cast<uint32_t>(kStreams[s]);
        const uint32_t word = Philox4x32(kSeed, stream, kStep, static_cast<uint64_t>(e) / 4)[e % 4];
        const uint32_t bits = std::bit_cast<uint32_t>(1.0f + 0x1p-10f);
        const uint16_t rounded = job.weights[i + misaligned];
        ASSERT_EQ(rounded, (bits + (word >> 16)) >> 16) << i;
        ups += rounded == 0x3F81 ? 1 : 0;
        trials += 1;
      }
    }
    // A binomial number, within four standard deviations.
    EXPECT_NEAR(ups, trials / 8, 4 * std::sqrt(trials * 7 / 64));
  }
}

TEST_F(Bf16Weights, RefuseWhatDoesNotFit) {
  const Optimizer sgd = Optimizers()[2];
  Job job = Begin(sgd);
  const auto refused = [&](const KernelOperands& operands, const KernelAttributes& attributes) {
    return Step("sgd", operands, attributes).code() == absl::StatusCode::kInvalidArgument;
  };
  const KernelAttributes stochastic = With(sgd.entries, true);
  EXPECT_TRUE(refused(Operands(job, 0, kRoundedElements, false), stochastic));
  EXPECT_TRUE(refused(Operands(job, 1026, kRoundedElements, true), stochastic));
  KernelOperands other = Operands(job, 0, kRoundedElements, true);
  other.out[0].dtype = DType::kF16;
  EXPECT_TRUE(refused(other, With(sgd.entries, false)));
  other = Operands(job, 0, kRoundedElements, true);
  other.out.push_back(other.out[0]);
  EXPECT_TRUE(refused(other, stochastic));
  Entries entries = sgd.entries;
  entries.emplace_back("stochastic_rounding", std::vector<int64_t>{7});
  EXPECT_TRUE(refused(Operands(job, 0, kRoundedElements, true), conformance::Attributes(entries)));
}

TEST_F(Bf16Weights, ManySegmentsTakeSeveralLaunches) {
  std::vector<int64_t> segments, streams;
  for (int64_t i = 0; i + 19 < kRoundedElements; i += 20) {
    for (int64_t value : {i, i + 13, int64_t{0}}) segments.push_back(value);
    streams.push_back(static_cast<int64_t>(streams.size()));
  }
  ASSERT_GT(streams.size(), 2u * SegmentBatch::kMost);
  Entries entries = SgdEntries(0, 0, segments);
  entries.emplace_back("stochastic_rounding", streams);
  gradient_.assign(kRoundedElements, -1.0f);
  coefficient_ = 1.0f;
  lr_ = 0x1p-8f;  // half a gap
  Job job;
  job.weights.assign(kRoundedElements, 0x3F80);
  ASSERT_TRUE(Step("sgd", Operands(job, 0, kRoundedElements, true), conformance::Attributes(entries)).ok());
  for (int64_t i = 0; i < kRoundedElements; ++i) {
    const bool inside = i % 20 < 13 && i / 20 * 20 + 19 < kRoundedElements;
    const uint64_t e = static_cast<uint64_t>(i % 20);
    const uint32_t stream = kFirstRoundingStream + static_cast<uint32_t>(i / 20);
    const uint32_t word = Philox4x32(kSeed, stream, kStep, e / 4)[e % 4];
    ASSERT_EQ(job.weights[i], inside && word >> 31 ? 0x3F81 : 0x3F80) << i;
  }
}

}  // namespace
}  // namespace ft::cuda::emulation
