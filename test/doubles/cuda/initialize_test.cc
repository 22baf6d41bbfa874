// Kernels that fill slices of flat buffers, emulated: the numbers are the CPU's to the bit, however the
// buffer is cut, and nothing else is touched.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "runtime/base/round_float.h"
#include "test/conformance/case.h"
#include "test/doubles/cuda/both_devices.h"

namespace ft::cuda::emulation {
namespace {

using conformance::Attributes;

constexpr int64_t kElements = 37 * 1024;
const std::vector<std::vector<int64_t>> kCuts = {
    {0, kElements}, {0, 1024, kElements}, {0, 12 * 1024, 13 * 1024, 36 * 1024, kElements}};

const std::vector<ParameterRange> kParameters = {{.begin = 0, .end = 1000},
                                                 {.begin = 1024, .end = 30001, .number = 9}};

class CudaInitialize : public testing::Test, protected BothDevices {
 protected:
  Tensor Rng() { return {rng_.data(), DType::kI64, 1, {3}}; }

  std::vector<int64_t> rng_ = {987654321987, 4, 1};
};

TEST_F(CudaInitialize, NormalNumbersAreTheCpusInEverySlice) {
  const KernelAttributes attributes = Attributes({{"parameter", int64_t{9}}, {"value", 0.02}});
  std::vector<float> expected(kElements, 7.0f);
  RunOnCpu("init_normal", {{Rng()}, {Slice(expected, 0, kElements, DType::kF32, kParameters)}, {}},
           attributes);
  for (const std::vector<int64_t>& cuts : kCuts) {
    std::vector<float> values(kElements, 7.0f);
    for (size_t i = 0; i + 1 < cuts.size(); ++i) {
      RunKernel("init_normal", {{Rng()}, {Slice(values, cuts[i], cuts[i + 1], DType::kF32, kParameters)}, {}},
                attributes);
    }
    for (int64_t i = 0; i < kElements; ++i) {
      if (cpu::BestIsa() == cpu::Isa::kGeneric) {  // may be without FMA: other last bits of the logarithm
        ASSERT_NEAR(values[i], expected[i], 4e-6 * 0.02) << i;
      } else {
        ASSERT_EQ(values[i], expected[i]) << i;
      }
    }
  }
}

TEST_F(CudaInitialize, EvenNumbersAreTheCpusInEverySlice) {
  const KernelAttributes attributes = Attributes({{"parameter", int64_t{9}}, {"value", 0.125}});
  std::vector<float> expected(kElements, 7.0f);
  RunOnCpu("init_uniform", {{Rng()}, {Slice(expected, 0, kElements, DType::kF32, kParameters)}, {}},
           attributes);
  for (const std::vector<int64_t>& cuts : kCuts) {
    std::vector<float> values(kElements, 7.0f);
    for (size_t i = 0; i + 1 < cuts.size(); ++i)
      RunKernel("init_uniform",
                {{Rng()}, {Slice(values, cuts[i], cuts[i + 1], DType::kF32, kParameters)}, {}}, attributes);
    EXPECT_EQ(values, expected);
  }
}

// Weights in bf16 without a master are the fp32 ones rounded.
TEST_F(CudaInitialize, Bf16ParametersAreTheFp32OnesRounded) {
  for (const char* op : {"init_normal", "init_uniform", "init_constant"}) {
    const KernelAttributes attributes = Attributes({{"parameter", int64_t{9}}, {"value", 0.02}});
    std::vector<float> wide(kElements, 7.0f);
    RunKernel(op, {{Rng()}, {Slice(wide, 0, kElements, DType::kF32, kParameters)}, {}}, attributes);
    for (const std::vector<int64_t>& cuts : kCuts) {
      std::vector<uint16_t> values(kElements, 0x40E0);
      for (size_t i = 0; i + 1 < cuts.size(); ++i)
        RunKernel(op, {{Rng()}, {Slice(values, cuts[i], cuts[i + 1], DType::kBF16, kParameters)}, {}},
                  attributes);
      for (int64_t i = 0; i < kElements; ++i) ASSERT_EQ(values[i], RoundToBF16(wide[i])) << op << " " << i;
    }
  }
}

TEST_F(CudaInitialize, NormalRefusesASliceInsideABlock) {
  std::vector<float> values(64);
  const auto kernel =
      bench_.Create("init_normal", {{Rng()}, {{values.data(), DType::kF32, 1, {64}, 1026, kParameters}}, {}},
                    Attributes({{"parameter", int64_t{9}}, {"value", 1.0}}));
  EXPECT_EQ(kernel.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(CudaInitialize, ConstantFillsItsParameterOnly) {
  std::vector<float> values(kElements, 7.0f);
  RunKernel("init_constant", {{Rng()}, {Slice(values, 2048, kElements, DType::kF32, kParameters)}, {}},
            Attributes({{"parameter", int64_t{9}}, {"value", 1.5}}));
  for (int64_t i = 0; i < kElements; ++i) {
    ASSERT_EQ(values[i], i >= 2048 && i < 30001 ? 1.5f : 7.0f) << i;
  }
}

// More gaps than one launch takes, at addresses of every alignment, in slices that begin inside them.
template <typename T>
void FillGaps(EmulatedBench& bench, DType dtype, const std::vector<int64_t>& cuts) {
  std::vector<ParameterRange> parameters;
  std::vector<bool> inside(kElements, false);
  int64_t at = 0;
  for (int i = 0; i < 150; ++i) {
    const int64_t begin = at + i % 11, end = begin + 1 + i * 7 % 253;
    parameters.push_back({begin, end});
    std::fill(inside.begin() + begin, inside.begin() + end, true);
    at = end;
  }
  std::vector<T> values(kElements, T{0x4D});
  for (size_t i = 0; i + 1 < cuts.size(); ++i) {
    const Tensor slice = {values.data() + cuts[i], dtype, 1, {cuts[i + 1] - cuts[i]}, cuts[i], parameters};
    const auto kernel = bench.Create("zero_padding", {{}, {slice}, {}}, {});
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    ASSERT_TRUE(bench.Run(**kernel).ok());
  }
  for (int64_t i = 0; i < kElements; ++i) ASSERT_EQ(values[i], T(inside[i] ? 0x4D : 0)) << i;
}

TEST_F(CudaInitialize, PaddingIsWhatNoParameterHas) {
  for (const std::vector<int64_t>& cuts : kCuts) {
    FillGaps<uint16_t>(bench_, DType::kBF16, cuts);
    FillGaps<uint32_t>(bench_, DType::kF32, cuts);
    FillGaps<uint8_t>(bench_, DType::kU8, cuts);
  }
}

TEST_F(CudaInitialize, WantsABufferOfTheParametersUnit) {
  std::vector<float> values(1024);
  const Tensor other = Slice(values, 0, 1024, DType::kF32),
               flat = Slice(values, 0, 1024, DType::kF32, kParameters);
  const auto status = [&](const char* op, const Tensor& tensor, int64_t parameter) {
    const bool pads = std::string_view(op) == "zero_padding";
    return bench_
        .Create(op, {pads ? std::vector<Tensor>() : std::vector<Tensor>{Rng()}, {tensor}, {}},
                Attributes({{"parameter", parameter}, {"value", 1.0}}))
        .status();
  };
  for (const char* op : {"init_normal", "init_uniform", "init_constant", "zero_padding"}) {
    EXPECT_TRUE(status(op, flat, 9).ok()) << op;
    EXPECT_EQ(status(op, other, 9).message(), std::string_view(op) == "zero_padding"
                                                  ? "flat is no flat buffer of a unit"
                                                  : "slice is no flat buffer of a unit");
  }
  EXPECT_EQ(status("init_normal", flat, 8).message(), "parameter 8 is in another unit");
}

// Views need not begin at a multiple of 16 bytes: the same numbers, by other accesses.
TEST_F(CudaInitialize, AnyAlignmentGivesTheSameNumbers) {
  constexpr int64_t kCount = 5003;
  std::vector<float> from(kCount + 4), to(kCount + 4);
  std::vector<uint16_t> narrow(kCount + 8);
  std::vector<float> results[4];
  for (int64_t shift = 0; shift < 4; ++shift) {
    for (int64_t i = 0; i < kCount; ++i) from[shift + i] = std::sin(static_cast<float>(i));
    const Tensor x = {from.data() + shift, DType::kF32, 1, {kCount}},
                 half = {narrow.data() + shift, DType::kBF16, 1, {kCount}},
                 r = {to.data() + (shift + 1) % 4, DType::kF32, 1, {kCount}};
    RunKernel("cast", {{x}, {half}, {}}, {});
    RunKernel("cast", {{half}, {r}, {}}, {});
    results[shift].assign(to.begin() + (shift + 1) % 4, to.begin() + (shift + 1) % 4 + kCount);
    EXPECT_EQ(results[shift], results[0]) << shift;
  }
  RunKernel("copy",
            {{{to.data() + 1, DType::kF32, 1, {kCount}}}, {{from.data(), DType::kF32, 1, {kCount}}}, {}}, {});
  EXPECT_EQ(std::memcmp(from.data(), to.data() + 1, kCount * sizeof(float)), 0);
}

}  // namespace
}  // namespace ft::cuda::emulation
