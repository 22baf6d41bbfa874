// The exact sum of squares and updates, emulated: the CPU's bits, however the buffer is cut, in any
// order of threads and blocks. With FT_WATCHED, watched for races.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "runtime/base/flat_layout.h"
#include "runtime/base/round_float.h"
#include "runtime/plan/testing/update_body.h"
#include "test/conformance/case.h"
#include "test/doubles/cuda/both_devices.h"
#include "test/doubles/cuda/launch.h"

#if !defined(FT_WATCHED)
#define FT_WATCHED 0
#endif

namespace ft::cuda::emulation {
namespace {

using conformance::Attributes;

// The last blocks of the grid have less to do than the others, the last block of elements too.
constexpr int64_t kSumElements = 150 * kBlockElements + 77;

class CudaSums : public testing::TestWithParam<Order>, protected BothDevices {
 protected:
  void SetUp() override { SetOrder(GetParam()); }
  void TearDown() override { SetOrder(Order::kAscending); }

  static Tensor Words(std::vector<int64_t>& words) {
    return {words.data(), DType::kI64, 1, {kAccumulatorWords}};
  }

  // Of both devices for the whole, and of CUDA for slices that add to each other.
  template <typename T>
  void CheckSum(std::vector<T>& gradient, DType dtype) {
    const int64_t size = static_cast<int64_t>(gradient.size());
    std::vector<int64_t> expected(kAccumulatorWords), whole(kAccumulatorWords, -1),
        slices(kAccumulatorWords, -1);
    RunOnCpu("sum_squares", {{Slice(gradient, 0, size, dtype), {}}, {Words(expected)}, {}});
    RunKernel("sum_squares", {{Slice(gradient, 0, size, dtype), {}}, {Words(whole)}, {}});
    EXPECT_EQ(whole, expected) << Name(dtype);
    const std::vector<int64_t> cuts = {0, kBlockElements, 70 * kBlockElements, size};
    for (size_t i = 0; i + 1 < cuts.size(); ++i) {
      const Tensor earlier = i == 0 ? Tensor{} : Words(slices);
      RunKernel("sum_squares",
                {{Slice(gradient, cuts[i], cuts[i + 1], dtype), earlier}, {Words(slices)}, {}});
    }
    EXPECT_EQ(slices, expected) << Name(dtype);
    float third = 1.0f / 3.0f;
    const std::vector<Tensor> means = {Slice(gradient, 0, size, dtype), {}, {&third, DType::kF32}};
    RunOnCpu("sum_squares", {means, {Words(expected)}, {}});
    RunKernel("sum_squares", {means, {Words(whole)}, {}});
    EXPECT_EQ(whole, expected) << Name(dtype) << ", of a mean";
    EXPECT_NE(whole, slices);
  }

  // From element `first` on.
  void CheckMicroSteps(int64_t first);
};

INSTANTIATE_TEST_SUITE_P(Orders, CudaSums, testing::Values(Order::kAscending, Order::kDescending),
                         [](const auto& info) {
                           return info.param == Order::kAscending ? "Ascending" : "Descending";
                         });

std::vector<float> Normals(uint64_t seed, double stddev) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<double> normal(0.0, stddev);
  std::vector<float> values(kSumElements);
  for (float& value : values) value = static_cast<float>(normal(generator));
  return values;
}

TEST_P(CudaSums, OfSquaresAreTheCpus) {
  std::vector<float> gradient = Normals(1, 1e-3);
  gradient[777] = 3e38f;  // its square needs the upper words
  gradient[20000] = 1e-44f;
  CheckSum(gradient, DType::kF32);
  std::vector<uint16_t> bf16, f16;
  for (float value : Normals(2, 0.5)) {
    bf16.push_back(RoundToBF16(value));
    f16.push_back(RoundToF16(value));
  }
  CheckSum(bf16, DType::kBF16);
  CheckSum(f16, DType::kF16);
  gradient[3] = INFINITY;
  gradient[90000] = -NAN;
  CheckSum(gradient, DType::kF32);
}

// So many that the warps of a full grid sum several blocks each.
TEST_P(CudaSums, OfManySquares) {
  if (FT_WATCHED) GTEST_SKIP() << "the watch would take a gigabyte";
  const std::vector<float> some = Normals(7, 2.0);
  std::vector<uint16_t> gradient(3 * 1024 * 8 * kBlockElements + 1);
  for (size_t i = 0; i < gradient.size(); ++i) gradient[i] = RoundToBF16(some[i % some.size()]);
  CheckSum(gradient, DType::kBF16);
}

// Blocks of nothing but numbers whose squares lie below 2^-267.
TEST_P(CudaSums, OfTheSmallestNumbers) {
  std::vector<float> gradient(kSumElements);
  for (int64_t i = 0; i < kSumElements; ++i)
    gradient[i] = std::ldexp(static_cast<float>(i % 5), -149 + i % 3);
  CheckSum(gradient, DType::kF32);
  std::vector<int64_t> sum(kAccumulatorWords);
  std::vector<float> first = {std::ldexp(3.0f, -149)}, norm(1), coefficient(1);
  RunKernel("sum_squares", {{{first.data(), DType::kF32, 1, {1}}, {}}, {Words(sum)}, {}});
  RunKernel("clip_coefficient", {{Words(sum)}, {{norm.data()}, {coefficient.data()}}, {}},
            Attributes({{"max_norm", 1.0}}));
  EXPECT_EQ(norm[0], first[0]);
  EXPECT_EQ(coefficient[0], 1.0f);
}

// Elements of a type, as many bytes each as it has.
std::vector<uint16_t> As(DType dtype, const std::vector<float>& values) {
  std::vector<uint16_t> words;
  for (const float value : values) {
    if (dtype != DType::kF32) words.push_back(dtype == DType::kBF16 ? RoundToBF16(value) : RoundToF16(value));
    if (dtype != DType::kF32) continue;
    const auto bits = std::bit_cast<uint32_t>(value);
    words.insert(words.end(), {static_cast<uint16_t>(bits), static_cast<uint16_t>(bits >> 16)});
  }
  return words;
}

// Of every type of what is added, the sum, and what it is rounded to; also with nothing to add.
void CudaSums::CheckMicroSteps(int64_t first) {
  constexpr int64_t kCount = 3001;
  std::vector<float> some = Normals(8, 1.0), others = Normals(9, 1.0);
  some.resize(kCount);
  others.resize(kCount);
  const auto words_of = [](DType dtype) { return static_cast<int64_t>(SizeOf(dtype) / sizeof(uint16_t)); };
  const auto tensor = [&](std::vector<uint16_t>& words, DType dtype) {
    return Tensor{words.data() + first * words_of(dtype), dtype, 1, {kCount - first}};
  };
  constexpr DType kTypes[] = {DType::kF32, DType::kBF16, DType::kF16};
  for (const DType x_type : kTypes) {
    for (const DType type : kTypes) {
      for (const DType result_type : kTypes) {
        SCOPED_TRACE(std::string(Name(x_type)) + " " + std::string(Name(type)) + " " +
                     std::string(Name(result_type)));
        std::vector<uint16_t> states[2][3], results[2][2];
        for (int on_cuda = 0; on_cuda < 2; ++on_cuda) {
          const auto run = [&](const char* op, const KernelOperands& operands) {
            on_cuda == 1 ? RunKernel(op, operands) : RunOnCpu(op, operands);
          };
          std::vector<uint16_t> x = As(x_type, some), state = As(type, others);
          const auto take = [&](const Tensor& last, int i) {
            results[on_cuda][i] = As(result_type, others);
            run("accumulated", {{last, tensor(state, type)},
                                {tensor(results[on_cuda][i], result_type), tensor(state, type)},
                                {}});
            states[on_cuda][i + 1] = state;
          };
          run("accumulate", {{tensor(x, x_type), tensor(state, type)}, {tensor(state, type)}, {}});
          states[on_cuda][0] = state;
          take(tensor(x, x_type), 0);
          run("accumulate", {{tensor(x, x_type), tensor(state, type)}, {tensor(state, type)}, {}});
          take(Tensor(), 1);
        }
        for (int i = 0; i < 3; ++i) EXPECT_EQ(states[0][i], states[1][i]);
        for (int i = 0; i < 2; ++i) EXPECT_EQ(results[0][i], results[1][i]);
        const std::vector<uint16_t> behind(states[1][1].begin() + first * words_of(type), states[1][1].end());
        EXPECT_EQ(behind, std::vector<uint16_t>(behind.size()));
      }
    }
  }
}

TEST_P(CudaSums, OverMicroStepsAreTheCpus) { CheckMicroSteps(0); }
// Not at a multiple of 16 bytes.
TEST_P(CudaSums, OverMicroStepsFromTheSecondElementAreTheCpus) { CheckMicroSteps(1); }

TEST_P(CudaSums, AndUpdatesAreTheCpus) {
  const std::vector<ParameterRange> parameters = {
      {0, 20000, true}, {20480, 20483, false}, {21504, 150 * kBlockElements - 70, true}};
  KernelAttributes attributes;
  attributes.SetCluster(std::make_shared<const Cluster>(Cluster{AdamwBody(), {}, nullptr}));
  const KernelAttributes formulas =
      Attributes({{"formulas", std::string(kAdamwFormulas)}, {"weight_decay", 0.1}});
  float coefficient = 0.75f, lr = 3e-4f;
  int64_t step = 6;
  std::vector<float> gradient = Normals(3, 0.1);
  const std::vector<float> parameter = Normals(4, 1.0), moment = Normals(5, 0.01);
  std::vector<float> square = Normals(6, 0.01);
  for (float& value : square) value = std::abs(value);
  const std::vector<int64_t> cuts = {0, 3 * kBlockElements, 21 * kBlockElements, 150 * kBlockElements};
  std::vector<std::vector<float>> states[2];
  for (int on_cuda = 0; on_cuda < 2; ++on_cuda) {
    const auto run = [&](const char* op, const KernelOperands& operands, const KernelAttributes& of) {
      on_cuda == 1 ? RunKernel(op, operands, of) : RunOnCpu(op, operands, of);
    };
    std::vector<float> scalars(2 * kAdamwScalars);
    const Tensor table = {scalars.data(), DType::kF32, 1, {2 * kAdamwScalars}};
    run("update_scalars",
        {{{&coefficient, DType::kF32}, {&lr, DType::kF32}, {&step, DType::kI64}}, {table}, {}}, formulas);
    std::vector<std::vector<float>>& state = states[on_cuda];
    state = {parameter, moment, square};
    for (size_t i = 0; i + 1 < cuts.size(); ++i) {
      KernelOperands operands = {{Slice(gradient, cuts[i], cuts[i + 1], DType::kF32), table}, {}, {}};
      for (std::vector<float>& each : state)
        operands.out.push_back(Slice(each, cuts[i], cuts[i + 1], DType::kF32, parameters));
      run("update", operands, attributes);
    }
    state.push_back(scalars);
  }
  EXPECT_EQ(states[1], states[0]);
  EXPECT_NE(states[1][0], parameter);
}

}  // namespace
}  // namespace ft::cuda::emulation
