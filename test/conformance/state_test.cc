// Kernels that change a state in place: sums over micro-steps, the loss scale.
#include <cstring>

#include "runtime/base/philox.h"
#include "test/conformance/exact_fixture.h"

namespace ft {
namespace {

using conformance::Array;
using conformance::As;
using conformance::Attributes;

class StateKernels : public CpuExact {
 protected:
  // `values` as a tensor of this type: its bits, made by the cast kernel, and read back by it.
  struct Numbers {
    std::vector<float> wide;
    std::vector<uint16_t> narrow;
    DType dtype;

    Tensor tensor() { return dtype == DType::kF32 ? Whole(wide, dtype) : Whole(narrow, dtype); }
  };

  Numbers Make(const Backend& backend, int64_t count, int64_t first, DType dtype) {
    Numbers numbers = {
        {gradient_.begin() + first, gradient_.begin() + first + count}, std::vector<uint16_t>(count), dtype};
    if (dtype != DType::kF32) {
      const Tensor wide = Whole(numbers.wide, DType::kF32);
      RunKernel(backend.registry, "cast", {{wide}, {numbers.tensor()}, {}}, {}, 1);
      Sync(backend, numbers);
    }
    return numbers;
  }

  // Reads a 16-bit tensor into `wide`.
  static void Sync(const Backend& backend, Numbers& numbers) {
    if (numbers.dtype == DType::kF32) return;
    RunKernel(backend.registry, "cast", {{numbers.tensor()}, {Whole(numbers.wide, DType::kF32)}, {}}, {}, 1);
  }
};

TEST_F(StateKernels, AccumulateAndTake) {
  for (Backend& backend : backends_) {
    for (DType dtype : conformance::kFloats) {
      for (int64_t count : {1, 7, 1031, 30001}) {
        for (bool in_place : {false, true}) {
          SCOPED_TRACE(std::string(Name(dtype)) + " of " + std::to_string(count));
          Numbers state = Make(backend, count, 0, dtype);
          std::vector<double> want(state.wide.begin(), state.wide.end());
          for (int64_t step = 1; step <= 3; ++step) {
            Numbers x = Make(backend, count, step * 1000, dtype);
            for (int64_t i = 0; i < count; ++i) want[i] = conformance::RoundTo(want[i] + x.wide[i], dtype);
            if (step < 3) {
              RunKernel(backend.registry, "accumulate", {{x.tensor(), state.tensor()}, {state.tensor()}, {}},
                        {}, 2);
              Sync(backend, state);
              EXPECT_EQ(std::vector<double>(state.wide.begin(), state.wide.end()), want);
              continue;
            }
            Numbers y = Make(backend, count, 9, dtype);
            Numbers& result = in_place ? x : y;
            RunKernel(backend.registry, "accumulated",
                      {{x.tensor(), state.tensor()}, {result.tensor(), state.tensor()}, {}}, {}, 2);
            Sync(backend, state);
            Sync(backend, result);
            EXPECT_EQ(std::vector<double>(result.wide.begin(), result.wide.end()), want);
            EXPECT_EQ(state.wide, std::vector<float>(count, 0.0f));
          }
        }
      }
    }
  }
}

// Sums of one type, what is added to them of another, and rounded to a third; in f32 between.
TEST_F(StateKernels, AccumulateRoundsOnce) {
  for (Backend& backend : backends_) {
    for (DType x_dtype : conformance::kFloats) {
      for (DType dtype : conformance::kFloats) {
        for (DType result_dtype : conformance::kFloats) {
          SCOPED_TRACE(std::string(Name(x_dtype)) + " to " + std::string(Name(dtype)) + " as " +
                       std::string(Name(result_dtype)));
          constexpr int64_t kCount = 2061;
          Numbers x = Make(backend, kCount, 1000, x_dtype), state = Make(backend, kCount, 0, dtype);
          Numbers result = Make(backend, kCount, 9, result_dtype);
          std::vector<double> sum, want;
          for (int64_t i = 0; i < kCount; ++i) {
            const auto in_f32 = [](double value) { return conformance::RoundTo(value, DType::kF32); };
            sum.push_back(conformance::RoundTo(in_f32(double{state.wide[i]} + x.wide[i]), dtype));
            want.push_back(conformance::RoundTo(in_f32(sum.back() + x.wide[i]), result_dtype));
          }
          RunKernel(backend.registry, "accumulate", {{x.tensor(), state.tensor()}, {state.tensor()}, {}}, {},
                    2);
          Sync(backend, state);
          EXPECT_EQ(std::vector<double>(state.wide.begin(), state.wide.end()), sum);
          RunKernel(backend.registry, "accumulated",
                    {{x.tensor(), state.tensor()}, {result.tensor(), state.tensor()}, {}}, {}, 2);
          Sync(backend, state);
          Sync(backend, result);
          EXPECT_EQ(std::vector<double>(result.wide.begin(), result.wide.end()), want);
          EXPECT_EQ(state.wide, std::vector<float>(kCount, 0.0f));
        }
      }
    }
  }
}

// What ops have added to the sum themselves is taken from there.
TEST_F(StateKernels, AccumulatedTakesWhatIsThere) {
  for (Backend& backend : backends_) {
    for (DType dtype : conformance::kFloats) {
      for (DType result_dtype : conformance::kFloats) {
        SCOPED_TRACE(std::string(Name(dtype)) + " as " + std::string(Name(result_dtype)));
        constexpr int64_t kCount = 1033;
        Numbers state = Make(backend, kCount, 0, dtype), result = Make(backend, kCount, 9, result_dtype);
        std::vector<double> want;
        for (float value : state.wide) want.push_back(conformance::RoundTo(value, result_dtype));
        RunKernel(backend.registry, "accumulated",
                  {{Tensor(), state.tensor()}, {result.tensor(), state.tensor()}, {}}, {}, 2);
        Sync(backend, state);
        Sync(backend, result);
        EXPECT_EQ(std::vector<double>(result.wide.begin(), result.wide.end()), want);
        EXPECT_EQ(state.wide, std::vector<float>(kCount, 0.0f));
      }
    }
  }
}

TEST_F(StateKernels, AccumulateCountsExactly) {
  for (Backend& backend : backends_) {
    std::vector<int64_t> x = {int64_t{1} << 53, 1, -7}, state = {1, 2, 3}, result(3);
    const auto whole = [](std::vector<int64_t>& words) { return Tensor{words.data(), DType::kI64, 1, {3}}; };
    RunKernel(backend.registry, "accumulate", {{whole(x), whole(state)}, {whole(state)}, {}}, {}, 2);
    EXPECT_EQ(state, (std::vector<int64_t>{(int64_t{1} << 53) + 1, 3, -4}));
    RunKernel(backend.registry, "accumulated", {{whole(x), whole(state)}, {whole(result), whole(state)}, {}},
              {}, 2);
    EXPECT_EQ(result, (std::vector<int64_t>{(int64_t{1} << 54) + 1, 4, -11}));
    EXPECT_EQ(state, std::vector<int64_t>(3));
  }
}

TEST_F(StateKernels, AccumulateRefusesAnotherType) {
  std::vector<int64_t> words(7);
  const Tensor x = {words.data(), DType::kI64, 1, {7}};
  Numbers state = Make(backends_[0], 7, 0, DType::kF32);
  const KernelFactory factory = backends_[0].registry.Find("accumulate");
  EXPECT_EQ(factory({{x, state.tensor()}, {state.tensor()}, {}}, {}, {1}).status().code(),
            absl::StatusCode::kInvalidArgument);
  Numbers wide = Make(backends_[0], 7, 0, DType::kF32), other = Make(backends_[0], 7, 0, DType::kF32);
  EXPECT_EQ(factory({{wide.tensor(), other.tensor()}, {state.tensor()}, {}}, {}, {1}).status().message(),
            "the state that is read must be the one that is written");
}

struct Scaling {
  double growth = 2.0, backoff = 0.5, min_scale = 0.0;
  int64_t interval = 4, hysteresis = 1, dynamic = 1;

  KernelAttributes attributes() const {
    return Attributes({{"growth_factor", growth},
                       {"backoff_factor", backoff},
                       {"growth_interval", interval},
                       {"hysteresis", hysteresis},
                       {"min_scale", min_scale},
                       {"dynamic", dynamic}});
  }
};

// The scale after each of `steps`: '.' a good step, 'x' one with a NaN.
std::vector<float> Scales(const KernelRegistry& registry, const Scaling& scaling, float start,
                          const std::string& steps) {
  std::vector<float> state = {start, 0, 0}, scales;
  float coefficient = 1;
  auto kernel = registry.Find("update_scaler")({{{&coefficient}}, {{state.data(), DType::kF32, 1, {3}}}, {}},
                                               scaling.attributes(), {1});
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  for (char step : steps) {
    coefficient = step == 'x' ? NAN : 0.5f;
    static_cast<CpuKernel&>(**kernel).Run();
    scales.push_back(state[0]);
  }
  return scales;
}

// DeepSpeed's bookkeeping: iterations since the last overflow, and how many overflows are still spared.
std::vector<float> DelayedScales(const Scaling& scaling, float scale, const std::string& steps) {
  std::vector<float> scales;
  int64_t iteration = 0, last_overflow = -1, left = scaling.hysteresis;
  for (char step : steps) {
    if (step == 'x') {
      if (scaling.hysteresis == 1 || left == 1) {
        scale = std::max(scale * static_cast<float>(scaling.backoff), static_cast<float>(scaling.min_scale));
      } else {
        --left;
      }
      last_overflow = iteration;
    } else if ((iteration - last_overflow) % scaling.interval == 0) {
      left = scaling.hysteresis;
      scale *= static_cast<float>(scaling.growth);
    }
    ++iteration;
    scales.push_back(scale);
  }
  return scales;
}

TEST_F(StateKernels, NothingCountedIsNotANumberAndLeavesTheLossScale) {
  for (Backend& backend : backends_) {
    std::vector<int64_t> count = {0, 70};
    float loss = 0, mean = 1, factor = 1, coefficient = NAN;
    RunKernel(backend.registry, "counted_mean",
              {{{count.data(), DType::kI64, 1, {2}}, {&loss}}, {{&mean}, {&factor}}, {}}, {}, 1);
    EXPECT_TRUE(std::isnan(mean) && std::isnan(factor));
    std::vector<float> scaler = {8, 3, 0}, before = scaler;
    RunKernel(backend.registry, "update_scaler",
              {{{&coefficient}, {&factor}}, {{scaler.data(), DType::kF32, 1, {3}}}, {}},
              Scaling().attributes(), 1);
    EXPECT_EQ(scaler, before);
    factor = 1;
    RunKernel(backend.registry, "update_scaler",
              {{{&coefficient}, {&factor}}, {{scaler.data(), DType::kF32, 1, {3}}}, {}},
              Scaling().attributes(), 1);
    EXPECT_EQ(scaler[0], 4);
  }
}

TEST_F(StateKernels, UpdateScalerIsTorchs) {
  for (Backend& backend : backends_) {
    const auto scales = [&](const std::string& steps, float start = 8.0f) {
      return Scales(backend.registry, {}, start, steps);
    };
    // Computed by torch.amp.GradScaler(init_scale=8, growth_interval=4).
    EXPECT_EQ(scales("....."), (std::vector<float>{8, 8, 8, 16, 16}));
    EXPECT_EQ(scales("...x...."), (std::vector<float>{8, 8, 8, 4, 4, 4, 4, 8}));
    EXPECT_EQ(scales("xx..x...."), (std::vector<float>{4, 2, 2, 2, 1, 1, 1, 1, 2}));
    EXPECT_EQ(scales("........"), (std::vector<float>{8, 8, 8, 16, 16, 16, 16, 32}));
    // A scale that would not be finite stays, and counting begins anew.
    EXPECT_EQ(scales("....x", 0x1p127f),
              (std::vector<float>{0x1p127f, 0x1p127f, 0x1p127f, 0x1p127f, 0x1p126f}));
  }
}

TEST_F(StateKernels, UpdateScalerDelaysAsDeepSpeedDoes) {
  std::mt19937 generator(11);
  for (int round = 0; round < 200; ++round) {
    Scaling scaling;
    scaling.interval = 1 + generator() % 6;
    scaling.hysteresis = 1 + generator() % 4;
    scaling.min_scale = round % 2 == 0 ? 1.0 : 0x1p-30;
    std::string steps;
    for (int i = 0; i < 60; ++i) steps += generator() % 4 == 0 ? 'x' : '.';
    for (Backend& backend : backends_) {
      EXPECT_EQ(Scales(backend.registry, scaling, 0x1p16f, steps), DelayedScales(scaling, 0x1p16f, steps))
          << steps << ", interval " << scaling.interval << ", hysteresis " << scaling.hysteresis;
    }
  }
}

TEST_F(StateKernels, StaticScaleStays) {
  Scaling scaling;
  scaling.dynamic = 0;
  EXPECT_EQ(Scales(backends_[0].registry, scaling, 8, "x....x"), std::vector<float>(6, 8.0f));
}

}  // namespace
}  // namespace ft
