// The optimizers' stochastic rounding of the bf16 copy: which of the two neighbours is taken follows the
// documented numbers, keeps the mean and sees no slices; many segments take several launches.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "runtime/backends/cuda/emulation/emulated_bench.h"
#include "runtime/backends/cuda/routines/optimizer.h"
#include "runtime/base/philox.h"
#include "test/conformance/case.h"

namespace ft::cuda::emulation {
namespace {

constexpr int64_t kElements = 8 * 1024, kSeed = 99, kStream = 7;

class StochasticRounding : public testing::Test {
 protected:
  struct Slice {
    int64_t begin, end;
  };

  static std::vector<std::pair<std::string, KernelAttributes::Value>> Attributes(
      std::vector<int64_t> segments) {
    return {{"momentum", 0.0},
            {"nesterov", int64_t{0}},
            {"weight_decay", 0.0},
            {"segments", std::move(segments)}};
  }

  absl::Status Step(const Slice& slice, DType copy_dtype, const KernelAttributes& attributes) {
    const int64_t n = slice.end - slice.begin;
    const KernelOperands operands = {{{gradient_.data() + slice.begin, DType::kF32, 1, {n}, slice.begin},
                                      {&coefficient_},
                                      {&lr_},
                                      {&step_, DType::kI64}},
                                     {{parameter_.data() + slice.begin, DType::kF32, 1, {n}, slice.begin},
                                      {copy_.data() + slice.begin, copy_dtype, 1, {n}, slice.begin}},
                                     {}};
    absl::StatusOr<std::unique_ptr<Kernel>> kernel = bench_.Create("sgd", operands, attributes);
    return kernel.ok() ? bench_.Run(**kernel) : kernel.status();
  }

  EmulatedBench bench_;
  float coefficient_ = 1.0f, lr_ = 1.0f;
  int64_t step_ = 3;
  std::vector<float> gradient_ = std::vector<float>(kElements, 0.0f);
  std::vector<float> parameter_ =
      std::vector<float>(kElements, 1.0f + 0x1p-9f);  // a quarter of the gap above 1
  std::vector<uint16_t> copy_ = std::vector<uint16_t>(kElements, 0x7777);
};

TEST_F(StochasticRounding, FollowsItsNumbersInEverySlice) {
  auto entries = Attributes({0, 5001, 0, 6144, kElements, 1});
  entries.emplace_back("stochastic_rounding", kStream);
  entries.emplace_back("rounding_seed", kSeed);
  const KernelAttributes attributes = conformance::Attributes(entries);
  gradient_[10] = -INFINITY;
  parameter_[11] = NAN;
  parameter_[12] = -1.0f - 0x1p-9f;
  parameter_[13] = 1.5f;
  for (const std::vector<Slice>& slices :
       {std::vector<Slice>{{0, kElements}}, {{0, 1024}, {1024, kElements}}}) {
    copy_.assign(kElements, 0x7777);
    parameter_[10] = 1.0f;
    for (const Slice& slice : slices) ASSERT_TRUE(Step(slice, DType::kBF16, attributes).ok());
    int64_t up = 0;
    for (int64_t i = 0; i < kElements; ++i) {
      const bool inside = i < 5001 || i >= 6144;
      const uint32_t word = Philox4x32(kSeed, kFirstRoundingStream + kStream, 3, i / 4)[i % 4];
      uint32_t want = (std::bit_cast<uint32_t>(parameter_[i]) + (word >> 16)) >> 16;
      if (i == 10) want = 0x7F80;
      if (i == 11) {
        ASSERT_TRUE(std::isnan(std::bit_cast<float>(static_cast<uint32_t>(copy_[i]) << 16)));
        continue;
      }
      ASSERT_EQ(copy_[i], inside ? want : 0x7777) << i;
      up += inside && i > 13 && copy_[i] == 0x3F81 ? 1 : 0;
    }
    EXPECT_EQ(copy_[13], 0x3FC0);                   // a bf16 already
    const double n = 5001 + kElements - 6144 - 14;  // a binomial: within five standard deviations
    EXPECT_NEAR(up / n, 0.25, 5 * std::sqrt(0.25 * 0.75 / n));
  }
}

TEST_F(StochasticRounding, TakesABf16CopyAndAStream) {
  auto entries = Attributes({0, kElements, 0});
  entries.emplace_back("stochastic_rounding", kStream);
  EXPECT_EQ(Step({0, kElements}, DType::kF16, conformance::Attributes(entries)).code(),
            absl::StatusCode::kInvalidArgument);
  entries.back().second = int64_t{-1};
  EXPECT_EQ(Step({0, kElements}, DType::kBF16, conformance::Attributes(entries)).code(),
            absl::StatusCode::kInvalidArgument);
  entries.back().second = int64_t{0};  // to nearest
  ASSERT_TRUE(Step({0, kElements}, DType::kBF16, conformance::Attributes(entries)).ok());
  EXPECT_EQ(copy_, std::vector<uint16_t>(kElements, 0x3F80));
}

TEST_F(StochasticRounding, ManySegmentsTakeSeveralLaunches) {
  std::vector<int64_t> segments;
  for (int64_t i = 0; i + 19 < kElements; i += 20) {
    for (int64_t value : {i, i + 13, int64_t{0}}) segments.push_back(value);
  }
  ASSERT_GT(segments.size() / 3, 2 * SegmentBatch::kMost);
  gradient_.assign(kElements, 0.5f);
  ASSERT_TRUE(Step({0, kElements}, DType::kBF16, conformance::Attributes(Attributes(segments))).ok());
  for (int64_t i = 0; i < kElements; ++i) {
    const bool inside = i % 20 < 13 && i / 20 * 20 + 19 < kElements;
    ASSERT_EQ(parameter_[i], 1.0f + 0x1p-9f - (inside ? 0.5f : 0.0f)) << i;
  }
}

}  // namespace
}  // namespace ft::cuda::emulation
