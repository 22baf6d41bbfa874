// Updates of bf16 weights that have no fp32 master: the step on the same weights in fp32, rounded to nearest
// or stochastically by the documented numbers, to the bit, however the unit is cut.
#include <algorithm>
#include <array>
#include <bit>

#include "runtime/base/philox.h"
#include "runtime/base/round_float.h"
#include "test/conformance/exact_fixture.h"

namespace ft {
namespace {

// Three parameters; what lies between them is padding.
const std::vector<ParameterRange> kRoundedParameters = {
    {0, 1000, true, 5}, {1024, 30001, false, 2}, {30720, kElements, true, 900}};
constexpr int64_t kSeed = 0x123456789ABCDEF, kStep = 3;

float Widened(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

// Element i of the unit, rounded by the convention of runtime/base/philox.h; nothing in the padding.
std::optional<uint16_t> RoundedAt(int64_t i, float value) {
  for (const ParameterRange& parameter : kRoundedParameters) {
    const int64_t element = i - parameter.begin;
    if (element < 0 || i >= parameter.end) continue;
    const uint32_t stream = kFirstRoundingStream + parameter.number;
    const uint32_t word = Philox4x32(kSeed, stream, kStep, static_cast<uint64_t>(element) / 4)[element % 4];
    return static_cast<uint16_t>((std::bit_cast<uint32_t>(value) + (word >> 16)) >> 16);
  }
  return std::nullopt;
}

class Bf16Weights : public CpuExact {
 protected:
  struct Job {
    std::vector<uint16_t> weights;
    std::vector<std::vector<float>> states;

    bool operator==(const Job&) const = default;
  };

  Job Begin() const {
    Job job;
    for (float value : parameter_) job.weights.push_back(RoundToBF16(value));
    job.states.assign(2, std::vector<float>(kElements, 0.25f));
    return job;
  }

  // `weights` as DType says; one part of the unit.
  KernelOperands Operands(void* weights, DType dtype, std::vector<std::vector<float>>& states, int64_t begin,
                          int64_t end, bool stochastic) {
    scalars_ = ScalarsOf(backends_[0].registry, coefficient_, lr_, step_);
    KernelOperands operands;
    operands.in = {Slice(gradient_, begin, end), Whole(scalars_, DType::kF32)};
    if (stochastic) operands.in.insert(operands.in.end(), {Whole(rng_, DType::kI64), Scalar(step_)});
    char* first = static_cast<char*>(weights) + begin * static_cast<int64_t>(SizeOf(dtype));
    operands.out = {{first, dtype, 1, {end - begin}, begin, kRoundedParameters}};
    for (auto& state : states) operands.out.push_back(Slice(state, begin, end));
    return operands;
  }

  static KernelAttributes With(DType parameter, bool stochastic) {
    return UpdateAttributes({.parameter = parameter, .result = stochastic ? DType::kF32 : parameter});
  }

  void Step(const Backend& backend, Job& job, bool stochastic, const std::vector<int64_t>& cuts,
            int threads) {
    for (size_t i = 0; i + 1 < cuts.size(); ++i) {
      RunKernel(backend.registry, "update",
                Operands(job.weights.data(), DType::kBF16, job.states, cuts[i], cuts[i + 1], stochastic),
                With(DType::kBF16, stochastic), threads);
    }
  }

  // States of padding are 0, of which updates make 0 in whatever part of it they reach; here they are not.
  static void ClearPadding(Job& job) {
    for (int64_t i = 0; i < kElements; ++i)
      if (!RoundedAt(i, 0))
        for (auto& state : job.states) state[i] = 0;
  }

  // What Step must give.
  Job Expected(const Backend& backend, bool stochastic) {
    Job job = Begin();
    std::vector<float> wide;
    for (uint16_t bits : job.weights) wide.push_back(Widened(bits));
    RunKernel(backend.registry, "update", Operands(wide.data(), DType::kF32, job.states, 0, kElements, false),
              With(DType::kF32, false), 1);
    for (int64_t i = 0; i < kElements; ++i) {
      const std::optional<uint16_t> rounded = RoundedAt(i, wide[i]);
      // What rounds to nearest takes padding for weights, what draws leaves it alone.
      if (rounded || !stochastic) job.weights[i] = stochastic ? *rounded : RoundToBF16(wide[i]);
    }
    return job;
  }

  std::vector<float> scalars_;
  std::vector<int64_t> rng_ = {kSeed, 77, 1};
  float coefficient_ = 0.75f, lr_ = 1e-2f;
  int64_t step_ = kStep;
};

TEST_F(Bf16Weights, AreTheFp32StepRounded) {
  for (const Backend& backend : backends_) {
    for (bool stochastic : {false, true}) {
      Job expected = Expected(backend, stochastic);
      ClearPadding(expected);
      for (const auto& cuts : kCuts) {
        Job job = Begin();
        Step(backend, job, stochastic, cuts, static_cast<int>(cuts.size()));
        ClearPadding(job);
        ASSERT_EQ(job, expected) << stochastic << " " << cuts.size();
      }
    }
    EXPECT_NE(Expected(backend, false), Expected(backend, true));
  }
}

TEST_F(Bf16Weights, StayWhenTheStepIsSkipped) {
  coefficient_ = NAN;
  for (bool stochastic : {false, true}) {
    Job job = Begin();
    Step(backends_[0], job, stochastic, kCuts[0], 1);
    EXPECT_EQ(job, Begin());
  }
}

// A step of 1/64 of the gap between neighbours, 64 times: to nearest, nothing ever moves. Stochastically,
// every step of every element goes up with a chance of 1/64, all independent: their number is a binomial one.
// With moments of 0 and a constant gradient a step of AdamW is lr, but for its eps.
TEST_F(Bf16Weights, FollowSmallStepsInTheMean) {
  constexpr int64_t kSteps = 64;
  gradient_.assign(kElements, -1.0f);
  coefficient_ = 1.0f;
  lr_ = 0x1p-13f;  // in [1, 2) the gap is 2^-7
  Job start = Begin();
  start.weights.assign(kElements, 0x3F80);
  start.states.assign(2, std::vector<float>(kElements, 0.0f));
  for (const Backend& backend : backends_) {
    Job nearest = start, stochastic = start;
    for (step_ = 0; step_ < kSteps; ++step_) {
      Step(backend, nearest, false, kCuts[0], 2);
      Step(backend, stochastic, true, kCuts[0], 2);
    }
    EXPECT_EQ(nearest.weights, start.weights);
    double ups = 0, trials = 0;
    for (int64_t i = 1024; i < 30001; ++i) {  // what does not decay
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
  gradient_.assign(kElements, 0.0f);
  coefficient_ = 1.0f;
  lr_ = 0.0f;
  for (const Backend& backend : backends_) {
    Job job = Begin();
    job.states.assign(2, std::vector<float>(kElements, 0.0f));
    const std::array<uint16_t, 8> values = {0x0000, 0x8000, 0x0001, 0x8001, 0x7F7F, 0xFF7F, 0x3FC0, 0x7FC1};
    std::copy(values.begin(), values.end(), job.weights.begin());
    const Job before = job;
    Step(backend, job, true, kCuts[0], 1);
    job.weights[1] &= 0x7FFF;  // 0 - 0 is 0
    EXPECT_EQ(job.weights[0] | job.weights[1], 0);
    for (int i = 2; i < 7; ++i) EXPECT_EQ(job.weights[i], before.weights[i]) << i;
    EXPECT_TRUE(std::isnan(Widened(job.weights[7])));
  }
}

TEST_F(Bf16Weights, RefuseOperandsThatDoNotFit) {
  Job job = Begin();
  std::vector<float> wide(kElements);
  const KernelFactory factory = backends_[0].registry.Find("update");
  const auto message = [&](const KernelOperands& operands, const KernelAttributes& attributes) {
    const auto kernel = factory(operands, attributes, {1});
    EXPECT_EQ(kernel.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(kernel.status().message());
  };
  const auto says = [&](const KernelOperands& operands, const KernelAttributes& attributes,
                        const char* what) {
    const std::string text = message(operands, attributes);
    EXPECT_NE(text.find(what), std::string::npos) << text;
  };
  const KernelAttributes stochastic = With(DType::kBF16, true), nearest = With(DType::kBF16, false);
  KernelOperands good = Operands(job.weights.data(), DType::kBF16, job.states, 0, kElements, true);
  const KernelOperands plain = Operands(job.weights.data(), DType::kBF16, job.states, 0, kElements, false);
  ASSERT_TRUE(factory(good, stochastic, {1}).ok());
  ASSERT_TRUE(factory(plain, nearest, {1}).ok());
  says(Operands(wide.data(), DType::kF32, job.states, 0, kElements, true), With(DType::kF32, true),
       "is a parameter in bf16");
  says(Operands(job.weights.data(), DType::kBF16, job.states, 1026, kElements, true), stochastic,
       "whole blocks");
  KernelOperands bad = plain;
  bad.out[0].dtype = DType::kF16;
  says(bad, nearest, "f32 or, without a master, bf16");
  bad = plain;
  bad.out[1].dtype = DType::kBF16;
  says(bad, nearest, "a state must be f32");
  bad = plain;
  bad.out.pop_back();
  says(bad, nearest, "its body 3 results");
  bad = plain;
  bad.in[1].dims[0] -= 2;
  says(bad, nearest, "are not those of its body");
  bad = plain;
  bad.in[0].dtype = DType::kBF16;
  says(bad, nearest, "operand 0 of its body is another");
  says(plain, With(DType::kF32, false), "operand 1 of its body is another");
  bad = good;
  bad.in.pop_back();
  says(bad, stochastic, "takes rng and step, or neither");
  says(plain, stochastic, "result 0 of its body is another");
  const std::vector<ParameterRange> unaligned = {{0, 4, true}, {1000, 1200}};
  bad = plain;
  bad.out[0].parameters = unaligned;
  says(bad, nearest, "begins at 1000, which is no block");
  bad.out[0].parameters = {};
  says(bad, nearest, "no flat buffer of a unit");
  says(plain, {}, "no body");
}

// Parameters begin as fp32 ones do, rounded to nearest.
TEST_F(Bf16Weights, AreDrawnAsFp32Ones) {
  for (const Backend& backend : backends_) {
    for (const char* kernel : {"init_normal", "init_uniform", "init_constant"}) {
      const KernelAttributes attributes =
          conformance::Attributes({{"parameter", int64_t{2}}, {"value", 0.3}});
      std::vector<float> wide(kElements, 7.0f);
      RunKernel(backend.registry, kernel,
                {{Whole(rng_, DType::kI64)}, {Slice(wide, 0, kElements, kRoundedParameters)}, {}}, attributes,
                1);
      for (const auto& cuts : kCuts) {
        std::vector<uint16_t> weights(kElements, 0x40E0);
        for (size_t i = 0; i + 1 < cuts.size(); ++i) {
          const Tensor part = {weights.data() + cuts[i], DType::kBF16, 1,
                               {cuts[i + 1] - cuts[i]},  cuts[i],      kRoundedParameters};
          RunKernel(backend.registry, kernel, {{Whole(rng_, DType::kI64)}, {part}, {}}, attributes, 2);
        }
        for (int64_t i = 0; i < kElements; ++i) ASSERT_EQ(weights[i], RoundToBF16(wide[i])) << i;
      }
    }
  }
}

}  // namespace
}  // namespace ft
