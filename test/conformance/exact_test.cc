// What must hold to the last bit: cutting a buffer into slices, the instruction set, and the exact sum of
// squares.
#include "runtime/backends/cpu/fixed_point.h"
#include "runtime/base/philox.h"
#include "test/conformance/exact_fixture.h"

namespace ft {
namespace {

class EveryKernelIsRun : public testing::Environment {
  void TearDown() override {
    for (const char* name : kExactKernels)
      EXPECT_TRUE(KernelsRun().contains(name) || testing::GTEST_FLAG(filter) != "*") << name;
  }
};
[[maybe_unused]] const testing::Environment* const kEveryKernelIsRun =
    testing::AddGlobalTestEnvironment(new EveryKernelIsRun);

TEST_F(CpuExact, UpdateSeesNeitherSlicesNorInstructionSet) {
  const KernelAttributes attributes = UpdateAttributes({});
  const std::vector<ParameterRange> parameters = {
      {0, 20000, true}, {20480, 20483, false}, {21504, 36000, true}};
  const float lr = 3e-4f;
  std::vector<std::vector<float>> first;
  for (Backend& backend : backends_) {
    std::vector<float> scalars = ScalarsOf(backend.registry, 0.75f, lr, 6);
    for (size_t cut = 0; cut < kCuts.size(); ++cut) {
      std::vector<std::vector<float>> state = {parameter_, moment_, square_};
      for (size_t i = 0; i + 1 < kCuts[cut].size(); ++i) {
        const int64_t begin = kCuts[cut][i], end = kCuts[cut][i + 1];
        const KernelOperands operands = {{Slice(gradient_, begin, end), Whole(scalars, DType::kF32)},
                                         {Slice(state[0], begin, end, parameters),
                                          Slice(state[1], begin, end), Slice(state[2], begin, end)},
                                         {}};
        RunKernel(backend.registry, "update", operands, attributes, 1 + static_cast<int>(cut % 2));
      }
      if (first.empty()) first = state;
      EXPECT_EQ(state, first) << cpu::Name(backend.isa) << ", cut " << cut;
    }
  }
  // Against the formula in f64: the last bits of each rounding. Padding within a block is computed too.
  for (int64_t i : {0, 5, 19999, 20481, 22000, 30000, 35999, 36864, 37001}) {
    const bool inside = i < 36864;
    const bool decay = i < 20480 || i >= 21504;
    const double g = 0.75 * gradient_[i], lr64 = lr, t = 7;
    const double m = 0.9 * moment_[i] + 0.1 * g, v = 0.95 * square_[i] + 0.05 * g * g;
    double p = parameter_[i] * (decay ? 1 - lr64 * 0.1 : 1);
    p -= lr64 / (1 - std::pow(0.9, t)) * m / (std::sqrt(v) / std::sqrt(1 - std::pow(0.95, t)) + 1e-8);
    if (!inside) {
      EXPECT_EQ(first[0][i], parameter_[i]);
      EXPECT_EQ(first[1][i], moment_[i]);
      continue;
    }
    EXPECT_NEAR(first[0][i], p, 0x1p-23 * std::max(1.0, std::abs(p))) << i;
    EXPECT_NEAR(first[1][i], m, 0x1p-22 * (std::abs(m) + std::abs(g))) << i;
    EXPECT_NEAR(first[2][i], v, 0x1p-22 * v) << i;
  }
}

// A formula is computed in f64, and rounded once; weights that do not decay have 0 for weight_decay.
TEST_F(CpuExact, ScalarsOfAStep) {
  const std::vector<float> scalars = ScalarsOf(backends_[0].registry, 0.75f, 1e-2f, 9);
  const double lr = 1e-2f;
  const auto step_size = static_cast<float>(lr / (1 - std::pow(0.9, 10)));
  const auto root = static_cast<float>(std::sqrt(1 - std::pow(0.95, 10)));
  EXPECT_EQ(scalars, (std::vector<float>{0.75f, 1.0f, step_size, root, 0.75f,
                                         static_cast<float>(1 - lr * 0.1), step_size, root}));
}

TEST_F(CpuExact, SumOfSquaresSeesNeitherSlicesNorThreadsNorInstructionSet) {
  gradient_[777] = 3e38f;  // its square needs the upper words
  gradient_[20000] = 1e-44f;
  std::vector<int64_t> first;
  for (Backend& backend : backends_) {
    for (size_t cut = 0; cut < kCuts.size(); ++cut) {
      std::vector<int64_t> sum(21, 0);
      const Tensor words = {sum.data(), DType::kI64, 1, {21}};
      for (size_t i = 0; i + 1 < kCuts[cut].size(); ++i) {
        const KernelOperands operands = {
            {Slice(gradient_, kCuts[cut][i], kCuts[cut][i + 1]), i == 0 ? Tensor{} : words}, {words}, {}};
        RunKernel(backend.registry, "sum_squares", operands, {}, 1 + static_cast<int>(cut % 3));
      }
      if (first.empty()) first = sum;
      EXPECT_EQ(sum, first) << cpu::Name(backend.isa) << ", cut " << cut;
    }
  }
}

// Of a sum over ranks: each element is made the mean, and rounded, as the update does it.
TEST_F(CpuExact, SumOfSquaresOfMeans) {
  const float third = 1.0f / 3.0f;
  std::vector<float> means = gradient_, factor = {third};
  for (float& mean : means) mean *= third;
  for (Backend& backend : backends_) {
    std::vector<int64_t> sum(21, 0), expected(21, 0);
    const Tensor words = Whole(sum, DType::kI64), wanted = Whole(expected, DType::kI64);
    RunKernel(backend.registry, "sum_squares",
              {{Slice(gradient_, 0, kElements), {}, Whole(factor, DType::kF32)}, {words}, {}}, {}, 2);
    RunKernel(backend.registry, "sum_squares", {{Slice(means, 0, kElements), {}}, {wanted}, {}}, {}, 2);
    EXPECT_EQ(sum, expected) << cpu::Name(backend.isa);
  }
}

TEST_F(CpuExact, ClipCoefficientIsTorchs) {
  for (Backend& backend : backends_) {
    std::vector<int64_t> sum(21, 0);
    std::vector<float> norm(1), coefficient(1);
    double squares = 0;
    for (float g : gradient_) squares += double{g} * g;
    const Tensor words = {sum.data(), DType::kI64, 1, {21}};
    RunKernel(backend.registry, "sum_squares", {{Slice(gradient_, 0, kElements), {}}, {words}, {}}, {}, 2);
    for (const double max_norm : {0.0, 1.0, 1e6}) {
      RunKernel(backend.registry, "clip_coefficient", {{words}, {{norm.data()}, {coefficient.data()}}, {}},
                conformance::Attributes({{"max_norm", max_norm}}), 1);
      EXPECT_NEAR(norm[0], std::sqrt(squares), 1e-7 * norm[0]);
      EXPECT_NEAR(coefficient[0], max_norm == 0 ? 1.0 : std::min(1.0, max_norm / (std::sqrt(squares) + 1e-6)),
                  2e-7);
    }
    for (const float bad : {INFINITY, NAN}) {
      std::vector<float> gradient = gradient_;
      gradient[3] = bad;
      RunKernel(backend.registry, "sum_squares", {{Slice(gradient, 0, kElements), {}}, {words}, {}}, {}, 1);
      RunKernel(backend.registry, "clip_coefficient", {{words}, {{norm.data()}, {coefficient.data()}}, {}},
                conformance::Attributes({{"max_norm", 1.0}}), 1);
      EXPECT_EQ(norm[0], INFINITY);
      EXPECT_TRUE(std::isnan(coefficient[0]));
    }
  }
}

TEST_F(CpuExact, ClipCoefficientUnscalesAndSeesTheLoss) {
  for (Backend& backend : backends_) {
    std::vector<int64_t> sum(21, 0);
    const Tensor words = Whole(sum, DType::kI64);
    RunKernel(backend.registry, "sum_squares", {{Slice(gradient_, 0, kElements), {}}, {words}, {}}, {}, 1);
    auto clip = [&](float loss, float scale, double max_norm, float factor = 1.0f) {
      std::vector<float> scaler = {scale, 3, 0};
      std::pair<float, float> result;
      RunKernel(backend.registry, "clip_coefficient",
                {{words, Scalar(loss), scale == 0 ? Tensor{} : Whole(scaler, DType::kF32),
                  factor == 1.0f ? Tensor{} : Scalar(factor)},
                 {Scalar(result.first), Scalar(result.second)},
                 {}},
                conformance::Attributes({{"max_norm", max_norm}}), 1);
      return result;
    };
    for (const double max_norm : {0.0, 0.125, 1e6}) {
      const auto [norm, coefficient] = clip(2.0f, 0.0f, max_norm);
      // A power of two scales the norm exactly, so clipping sees the same gradient.
      const auto [scaled_norm, scaled] = clip(2.0f, 0x1p10f, max_norm * 0x1p-10);
      EXPECT_EQ(scaled_norm * 0x1p10f, norm);
      EXPECT_NEAR(scaled * 0x1p10f, coefficient, 1e-5 * coefficient);  // 1e-6 beside the norm is not scaled
      EXPECT_EQ(clip(2.0f, 1.0f, max_norm), std::pair(norm, coefficient));
      // So does a factor, which the gradient is still to be multiplied by.
      const auto [longer_norm, longer] = clip(2.0f, 0.0f, max_norm * 4, 4.0f);
      EXPECT_EQ(longer_norm, norm * 4);
      EXPECT_NEAR(longer, coefficient * 4, 4e-5 * coefficient);
      EXPECT_TRUE(std::isnan(clip(2.0f, 4.0f, max_norm, NAN).second));
    }
    for (const float bad : {INFINITY, -INFINITY, NAN}) {
      EXPECT_TRUE(std::isnan(clip(bad, 0.0f, 1.0).second));
      EXPECT_TRUE(std::isnan(clip(bad, 4.0f, 0.0).second));
      EXPECT_TRUE(std::isfinite(clip(bad, 4.0f, 1.0).first));
    }
    sum[20] = 1;  // a block that is not finite
    EXPECT_TRUE(std::isnan(clip(1.0f, 4.0f, 0.0).second));
  }
}

// The sum of a 16-bit gradient is that of its numbers in f32.
TEST_F(CpuExact, SumOfSquaresOfSixteenBits) {
  for (Backend& backend : backends_) {
    for (DType dtype : {DType::kBF16, DType::kF16}) {
      std::vector<uint16_t> narrow(kElements - 3);
      std::vector<float> wide(narrow.size());
      std::vector<int64_t> sums[2] = {std::vector<int64_t>(21), std::vector<int64_t>(21)};
      RunKernel(backend.registry, "cast", {{Slice(gradient_, 0, kElements - 3)}, {Whole(narrow, dtype)}, {}},
                {}, 1);
      RunKernel(backend.registry, "cast", {{Whole(narrow, dtype)}, {Whole(wide, DType::kF32)}, {}}, {}, 2);
      RunKernel(backend.registry, "sum_squares",
                {{Whole(narrow, dtype), {}}, {Whole(sums[0], DType::kI64)}, {}}, {}, 2);
      RunKernel(backend.registry, "sum_squares",
                {{Whole(wide, DType::kF32), {}}, {Whole(sums[1], DType::kI64)}, {}}, {}, 1);
      EXPECT_EQ(sums[0], sums[1]);
    }
  }
}

TEST_F(CpuExact, InitSeesNeitherSlicesNorInstructionSet) {
  const KernelAttributes attributes = conformance::Attributes({{"parameter", int64_t{9}}, {"value", 0.5}});
  const std::vector<ParameterRange> parameters = {{0, 1000}, {.begin = 1024, .end = 30001, .number = 9}};
  std::vector<int64_t> rng = {987654321987, 4, 1};
  std::vector<float> first;
  for (Backend& backend : backends_) {
    for (size_t cut = 0; cut < kCuts.size(); ++cut) {
      std::vector<float> values(kElements, 7.0f);
      for (size_t i = 0; i + 1 < kCuts[cut].size(); ++i) {
        RunKernel(backend.registry, "init_normal",
                  {{{rng.data(), DType::kI64, 1, {3}}},
                   {Slice(values, kCuts[cut][i], kCuts[cut][i + 1], parameters)},
                   {}},
                  attributes, 2);
      }
      if (first.empty()) first = values;
      // The last bits of the logarithm may differ where there is no FMA; slices never do.
      if (cut == 0 && backend.isa != cpu::Isa::kGeneric) {
        for (int64_t i = 0; i < kElements; ++i) ASSERT_NEAR(values[i], first[i], 4e-6 * 0.5) << i;
        first = values;
      }
      EXPECT_EQ(values, first) << cpu::Name(backend.isa) << ", cut " << cut;
    }
  }
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < kElements; ++i) {
    if (i < 1024 || i >= 30001) {
      ASSERT_EQ(first[i], 7.0f);
      continue;
    }
    // Box-Muller in f64.
    const int64_t element = i - 1024;
    const PhiloxBlock words = Philox4x32(987654321987, 9, 0, element / 4);
    const int pair = element % 4 / 2 * 2;
    const double u = (words[pair] + 1.0) * 0x1p-32, angle = 2 * M_PI * words[pair + 1] * 0x1p-32;
    const double z = std::sqrt(-2 * std::log(u)) * (element % 2 == 0 ? std::cos(angle) : std::sin(angle));
    ASSERT_NEAR(first[i], 0.5 * z, 4e-6 * 0.5) << i;  // u is rounded to 24 bits: 2^-24 / u of ln u near u = 1
    sum += first[i];
    squares += double{first[i]} * first[i];
  }
  const double n = 30001 - 1024;
  EXPECT_NEAR(sum / n, 0, 5 * 0.5 / std::sqrt(n));
  EXPECT_NEAR(squares / n, 0.25, 5 * 0.25 * std::sqrt(2 / n));
}

TEST_F(CpuExact, EvenNumbersSeeNeitherSlicesNorInstructionSet) {
  const KernelAttributes attributes = conformance::Attributes({{"parameter", int64_t{9}}, {"value", 0.3}});
  const std::vector<ParameterRange> parameters = {{0, 1000}, {.begin = 1024, .end = 30001, .number = 9}};
  std::vector<int64_t> rng = {987654321987, 4, 1};
  for (Backend& backend : backends_) {
    for (const auto& cuts : kCuts) {
      std::vector<float> values(kElements, 7.0f);
      for (size_t i = 0; i + 1 < cuts.size(); ++i)
        RunKernel(
            backend.registry, "init_uniform",
            {{{rng.data(), DType::kI64, 1, {3}}}, {Slice(values, cuts[i], cuts[i + 1], parameters)}, {}},
            attributes, 2);
      double sum = 0, squares = 0;
      for (int64_t i = 0; i < kElements; ++i) {
        if (i < 1024 || i >= 30001) {
          ASSERT_EQ(values[i], 7.0f);
          continue;
        }
        const uint32_t word = Philox4x32(987654321987, 9, 0, (i - 1024) / 4)[(i - 1024) % 4];
        const double even = static_cast<double>(word >> 8) / (1 << 23) - 1;
        ASSERT_EQ(values[i], static_cast<float>(static_cast<double>(0.3f) * even)) << i;
        sum += values[i];
        squares += double{values[i]} * values[i];
      }
      const double n = 30001 - 1024;
      EXPECT_NEAR(sum / n, 0, 5 * 0.3 / std::sqrt(3 * n));
      EXPECT_NEAR(squares / n, 0.03, 5 * 0.03 * std::sqrt(0.8 / n));
    }
  }
}

TEST_F(CpuExact, InitConstantAndZeroPadding) {
  const std::vector<ParameterRange> parameters = {
      {0, 1000}, {.begin = 1024, .end = 5000, .number = 2}, {.begin = 6144, .end = 6145, .number = 1}};
  std::vector<int64_t> rng = {1, 0, 0};
  for (Backend& backend : backends_) {
    std::vector<float> values(kElements, 7.0f);
    RunKernel(backend.registry, "init_constant",
              {{{rng.data(), DType::kI64, 1, {3}}}, {Slice(values, 2048, kElements, parameters)}, {}},
              conformance::Attributes({{"parameter", int64_t{2}}, {"value", 1.5}}), 1);
    RunKernel(backend.registry, "zero_padding", {{}, {Slice(values, 0, kElements, parameters)}, {}}, {}, 1);
    for (int64_t i = 0; i < kElements; ++i) {
      const bool inside = i < 1000 || (i >= 1024 && i < 5000) || i == 6144;
      ASSERT_EQ(values[i], !inside ? 0.0f : (i >= 2048 && i < 5000 ? 1.5f : 7.0f)) << i;
    }
  }
}

TEST(FixedPoint, SumsExactlyAndRoundsOnce) {
  std::mt19937_64 generator(3);
  for (int round = 0; round < 200; ++round) {
    // Random doubles whose exact sum fits in 128 bits of integers at one scale.
    const int scale = static_cast<int>(generator() % 500) - 290;
    unsigned __int128 exact = 0;
    int64_t words[kAccumulatorWords] = {};
    for (int i = 0; i < 50; ++i) {
      const uint64_t mantissa = generator() >> 11;
      const int up = static_cast<int>(generator() % 60);
      exact += static_cast<unsigned __int128>(mantissa) << up;
      cpu::AddExactly(std::ldexp(static_cast<double>(mantissa), up + scale), words);
    }
    EXPECT_EQ(cpu::ToDouble(words), std::ldexp(static_cast<double>(exact), scale)) << "scale " << scale;
    cpu::Normalize(words);
    EXPECT_EQ(cpu::ToDouble(words), std::ldexp(static_cast<double>(exact), scale))
        << "normalized, scale " << scale;
  }
  int64_t words[kAccumulatorWords] = {};
  EXPECT_EQ(cpu::ToDouble(words), 0.0);
  // Squares of the smallest floats, whose 53 bits reach below the lowest word.
  for (int exponent = -298; exponent < -230; ++exponent) {
    int64_t low[kAccumulatorWords] = {};
    cpu::AddExactly(std::ldexp(1.0, exponent), low);
    cpu::AddExactly(std::ldexp(3.0, -298), low);
    EXPECT_EQ(cpu::ToDouble(low), std::ldexp(1.0, exponent) + std::ldexp(3.0, -298)) << exponent;
  }
}

}  // namespace
}  // namespace ft
