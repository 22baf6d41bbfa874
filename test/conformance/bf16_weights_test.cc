// Optimizers on bf16 weights that have no fp32 master: the step of the fp32 kernel on the same weights,
// rounded to nearest or stochastically by the documented numbers, to the bit, however the unit is cut.
#include <algorithm>
#include <array>
#include <bit>

#include "runtime/base/philox.h"
#include "runtime/base/round_float.h"
#include "test/conformance/exact_fixture.h"

namespace ft {
namespace {

// Three parameters; what lies between them is padding.
const std::vector<int64_t> kRoundedSegments = {0, 1000, 1, 1024, 30001, 0, 30720, kElements, 1};
const std::vector<int64_t> kStreams = {5, 2, 900};
constexpr int64_t kSeed = 0x123456789ABCDEF, kStep = 3;

float Widened(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

// Element i of the unit, rounded by the convention of runtime/base/philox.h; nothing in the padding.
std::optional<uint16_t> RoundedAt(int64_t i, float value) {
  for (size_t s = 0; s < kStreams.size(); ++s) {
    const int64_t element = i - kRoundedSegments[3 * s];
    if (element < 0 || i >= kRoundedSegments[3 * s + 1]) continue;
    const uint32_t stream = kFirstRoundingStream + static_cast<uint32_t>(kStreams[s]);
    const uint32_t word = Philox4x32(kSeed, stream, kStep, static_cast<uint64_t>(element) / 4)[element % 4];
    return static_cast<uint16_t>((std::bit_cast<uint32_t>(value) + (word >> 16)) >> 16);
  }
  return std::nullopt;
}

struct Bf16Optimizer {
  const char* kernel;
  size_t states;
  std::vector<std::pair<std::string, KernelAttributes::Value>> attributes;
};

std::vector<Bf16Optimizer> Bf16Optimizers() {
  const std::vector<std::pair<std::string, KernelAttributes::Value>> adam = {
      {"beta1", 0.9}, {"beta2", 0.95}, {"eps", 1e-8}, {"weight_decay", 0.1}, {"segments", kRoundedSegments}};
  const auto sgd = [](double momentum, int64_t nesterov) {
    return std::vector<std::pair<std::string, KernelAttributes::Value>>{{"momentum", momentum},
                                                                        {"nesterov", nesterov},
                                                                        {"weight_decay", 0.1},
                                                                        {"segments", kRoundedSegments}};
  };
  return {{"adamw", 2, adam}, {"adam", 2, adam}, {"sgd", 0, sgd(0, 0)}, {"sgd", 1, sgd(0.9, 1)}};
}

// p -= lr g.
Bf16Optimizer PlainSgd() {
  return {
      "sgd",
      0,
      {{"momentum", 0.0}, {"nesterov", int64_t{0}}, {"weight_decay", 0.0}, {"segments", kRoundedSegments}}};
}

class Bf16Weights : public CpuExact {
 protected:
  struct Job {
    std::vector<uint16_t> weights;
    std::vector<std::vector<float>> states;

    bool operator==(const Job&) const = default;
  };

  Job Begin(const Bf16Optimizer& optimizer) const {
    Job job;
    for (float value : parameter_) job.weights.push_back(RoundToBF16(value));
    job.states.assign(optimizer.states, std::vector<float>(kElements, 0.25f));
    return job;
  }

  // `weights` as DType says; one part of the unit.
  KernelOperands Operands(void* weights, DType dtype, std::vector<std::vector<float>>& states, int64_t begin,
                          int64_t end, bool stochastic) {
    KernelOperands operands;
    operands.in = {Slice(gradient_, begin, end), Scalar(coefficient_), Scalar(lr_), Scalar(step_)};
    if (stochastic) operands.in.push_back(Whole(rng_, DType::kI64));
    char* first = static_cast<char*>(weights) + begin * static_cast<int64_t>(SizeOf(dtype));
    operands.out = {{first, dtype, 1, {end - begin}, begin}};
    for (auto& state : states) operands.out.push_back(Slice(state, begin, end));
    return operands;
  }

  static KernelAttributes With(const Bf16Optimizer& optimizer, bool stochastic) {
    auto entries = optimizer.attributes;
    if (stochastic) entries.emplace_back("stochastic_rounding", kStreams);
    return conformance::Attributes(entries);
  }

  void Step(const Backend& backend, const Bf16Optimizer& optimizer, Job& job, bool stochastic,
            const std::vector<int64_t>& cuts, int threads) {
    for (size_t i = 0; i + 1 < cuts.size(); ++i) {
      RunKernel(backend.registry, optimizer.kernel,
                Operands(job.weights.data(), DType::kBF16, job.states, cuts[i], cuts[i + 1], stochastic),
                With(optimizer, stochastic), threads);
    }
  }

  // What Step must give.
  Job Expected(const Backend& backend, const Bf16Optimizer& optimizer, bool stochastic) {
    Job job = Begin(optimizer);
    std::vector<float> wide;
    for (uint16_t bits : job.weights) wide.push_back(Widened(bits));
    RunKernel(backend.registry, optimizer.kernel,
              Operands(wide.data(), DType::kF32, job.states, 0, kElements, false), With(optimizer, false), 1);
    for (int64_t i = 0; i < kElements; ++i) {
      const std::optional<uint16_t> rounded = RoundedAt(i, wide[i]);
      if (rounded) job.weights[i] = stochastic ? *rounded : RoundToBF16(wide[i]);
    }
    return job;
  }

  std::vector<int64_t> rng_ = {kSeed, 77, 1};
  float coefficient_ = 0.75f, lr_ = 1e-2f;
  int64_t step_ = kStep;
};

TEST_F(Bf16Weights, AreTheFp32StepRounded) {
  for (const Bf16Optimizer& optimizer : Bf16Optimizers()) {
    for (const Backend& backend : backends_) {
      for (bool stochastic : {false, true}) {
        const Job expected = Expected(backend, optimizer, stochastic);
        for (const auto& cuts : kCuts) {
          Job job = Begin(optimizer);
          Step(backend, optimizer, job, stochastic, cuts, static_cast<int>(cuts.size()));
          ASSERT_EQ(job, expected) << optimizer.kernel << " " << stochastic << " " << cuts.size();
        }
      }
      EXPECT_NE(Expected(backend, optimizer, false), Expected(backend, optimizer, true));
    }
  }
}

TEST_F(Bf16Weights, StayWhenTheStepIsSkipped) {
  coefficient_ = NAN;
  for (const Bf16Optimizer& optimizer : Bf16Optimizers()) {
    Job job = Begin(optimizer);
    Step(backends_[0], optimizer, job, true, kCuts[0], 1);
    EXPECT_EQ(job, Begin(optimizer));
  }
}

// A step of 1/64 of the gap between neighbours, 64 times: to nearest, nothing ever moves. Stochastically,
// every step of every element goes up with a chance of 1/64, all independent: their number is a binomial one.
TEST_F(Bf16Weights, FollowSmallStepsInTheMean) {
  constexpr int64_t kSteps = 64;
  const Bf16Optimizer sgd = PlainSgd();
  gradient_.assign(kElements, -1.0f);
  coefficient_ = 1.0f;
  lr_ = 0x1p-13f;  // in [1, 2) the gap is 2^-7
  Job start = Begin(sgd);
  start.weights.assign(kElements, 0x3F80);
  for (const Backend& backend : backends_) {
    Job nearest = start, stochastic = start;
    for (step_ = 0; step_ < kSteps; ++step_) {
      Step(backend, sgd, nearest, false, kCuts[0], 2);
      Step(backend, sgd, stochastic, true, kCuts[0], 2);
    }
    EXPECT_EQ(nearest, start);
    double ups = 0, trials = 0;
    for (int64_t i = 0; i < kElements; ++i) {
      if (!RoundedAt(i, 0)) continue;
      ups += stochastic.weights[i] - 0x3F80;
      trials += kSteps;
    }
    constexpr double kChance = 1.0 / 64;
    EXPECT_NEAR(ups, trials * kChance, 4 * std::sqrt(trials * kChance * (1 - kChance)));
  }
}

// What is a bf16 already stays, subnormals and the largest too; what overflows is infinite, and NaN stays
// NaN.
TEST_F(Bf16Weights, EdgesOfRounding) {
  const Bf16Optimizer sgd = PlainSgd();
  gradient_.assign(kElements, 0.0f);
  coefficient_ = lr_ = 1.0f;
  for (const Backend& backend : backends_) {
    Job job = Begin(sgd);
    const std::array<uint16_t, 7> values = {0x0000, 0x8000, 0x0001, 0x8001, 0x7F7F, 0xFF7F, 0x3FC0};
    std::copy(values.begin(), values.end(), job.weights.begin());
    const Job before = job;
    gradient_[4] = gradient_[5] = 0.0f;
    Step(backend, sgd, job, true, kCuts[0], 1);
    EXPECT_EQ(job.weights, before.weights);
    gradient_[4] = -3e38f;
    gradient_[5] = 3e38f;
    job.weights[6] = 0x7FC1;
    Step(backend, sgd, job, true, kCuts[0], 1);
    EXPECT_EQ(job.weights[4], 0x7F80);
    EXPECT_EQ(job.weights[5], 0xFF80);
    EXPECT_TRUE(std::isnan(Widened(job.weights[6])));
  }
}

TEST_F(Bf16Weights, RefuseOperandsThatDoNotFit) {
  const Bf16Optimizer sgd = Bf16Optimizers()[2];
  Job job = Begin(sgd);
  std::vector<float> wide(kElements);
  const KernelFactory factory = backends_[0].registry.Find("sgd");
  const auto message = [&](const KernelOperands& operands, const KernelAttributes& attributes) {
    const auto kernel = factory(operands, attributes, {1});
    EXPECT_EQ(kernel.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(kernel.status().message());
  };
  const KernelAttributes stochastic = With(sgd, true);
  KernelOperands good = Operands(job.weights.data(), DType::kBF16, job.states, 0, kElements, true);
  ASSERT_TRUE(factory(good, stochastic, {1}).ok());
  EXPECT_NE(message(Operands(wide.data(), DType::kF32, job.states, 0, kElements, true), stochastic)
                .find("takes a parameter in bf16"),
            std::string::npos);
  EXPECT_NE(message(Operands(job.weights.data(), DType::kBF16, job.states, 0, kElements, false), stochastic)
                .find("takes an operand rng"),
            std::string::npos);
  EXPECT_NE(message(Operands(job.weights.data(), DType::kBF16, job.states, 1026, kElements, true), stochastic)
                .find("multiple of 4"),
            std::string::npos);
  KernelOperands half = good;
  half.out[0].dtype = DType::kF16;
  EXPECT_NE(message(half, With(sgd, false)).find("f32 or, without a master, bf16"), std::string::npos);
  KernelOperands copied = good;
  copied.out.push_back(Whole(job.weights, DType::kBF16));
  EXPECT_NE(message(copied, stochastic).find("has no working copy"), std::string::npos);
  auto entries = sgd.attributes;
  entries.emplace_back("stochastic_rounding", std::vector<int64_t>{1});
  EXPECT_NE(message(good, conformance::Attributes(entries)).find("must have 3 streams"), std::string::npos);
}

// Parameters begin as fp32 ones do, rounded to nearest.
TEST_F(Bf16Weights, AreDrawnAsFp32Ones) {
  for (const Backend& backend : backends_) {
    for (const char* kernel : {"init_normal", "init_constant"}) {
      const KernelAttributes attributes = conformance::Attributes(
          {{"begin", int64_t{1024}}, {"end", int64_t{30001}}, {"stream", int64_t{9}}, {"value", 0.3}});
      std::vector<float> wide(kElements, 7.0f);
      RunKernel(backend.registry, kernel, {{Whole(rng_, DType::kI64)}, {Slice(wide, 0, kElements)}, {}},
                attributes, 1);
      for (const auto& cuts : kCuts) {
        std::vector<uint16_t> weights(kElements, 0x40E0);
        for (size_t i = 0; i + 1 < cuts.size(); ++i) {
          const Tensor part = {weights.data() + cuts[i], DType::kBF16, 1, {cuts[i + 1] - cuts[i]}, cuts[i]};
          RunKernel(backend.registry, kernel, {{Whole(rng_, DType::kI64)}, {part}, {}}, attributes, 2);
        }
        for (int64_t i = 0; i < kElements; ++i) ASSERT_EQ(weights[i], RoundToBF16(wide[i])) << i;
      }
    }
  }
}

}  // namespace
}  // namespace ft
