// Every conformance case through the CUDA backend's makers and device code, emulated. One test per op:
// --gtest_filter='*/matmul'. With FT_WATCHED, every access is watched for races (race_watch.h).
#include <gtest/gtest.h>

#include <algorithm>

#include "test/conformance/bias_grad.h"
#include "test/conformance/fused_gelu.h"
#include "test/conformance/harness.h"
#include "test/doubles/cuda/emulated_bench.h"
#include "test/doubles/cuda/fiber.h"
#include "test/doubles/cuda/launch.h"

#if !defined(FT_WATCHED)
#define FT_WATCHED 0
#endif

namespace ft::cuda::emulation {
namespace {

using conformance::Arrays;
using conformance::Case;
using conformance::Compare;
using conformance::RunCase;

class CudaConformance : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(bench_.Has(GetParam())) << "the CUDA backend has no kernel '" << GetParam() << "'";
    ASSERT_FALSE(Cases().empty());
  }
  void TearDown() override { SetOrder(Order::kAscending); }

  // What a sanitizer or the watch sees is the same for both types of 16 bits.
  static std::vector<const Case*> Cases() {
    std::vector<const Case*> cases = conformance::CasesOf(GetParam());
    const auto has_f16 = [](const Arrays& arrays) {
      return std::any_of(arrays.begin(), arrays.end(),
                         [](const conformance::Array& array) { return array.dtype == DType::kF16; });
    };
    if (FT_FIBER_ASAN || FT_WATCHED)
      std::erase_if(cases, [&](const Case* c) { return has_f16(c->in) || has_f16(c->expected); });
    return cases;
  }

  EmulatedBench bench_;
};

// Also in place, and whatever the order in which threads and blocks run: the latter shows nothing under a
// sanitizer or the watch that the former does not.
TEST_P(CudaConformance, MatchesReferenceInAnyOrder) {
  for (const Case* each : Cases()) {
    const Case& c = *each;
    SCOPED_TRACE(c.op + " " + c.label);
    const absl::StatusOr<Arrays> got = RunCase(bench_, c, false);
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(Compare(c, *got, bench_.device_class()), "");
    if (!c.rules.reusable.empty()) {
      SCOPED_TRACE("in place");
      const absl::StatusOr<Arrays> in_place = RunCase(bench_, c, true);
      ASSERT_TRUE(in_place.ok()) << in_place.status();
      EXPECT_EQ(Compare(c, *in_place, bench_.device_class()), "");
    }
    if (FT_FIBER_ASAN || FT_WATCHED) continue;
    SetOrder(Order::kDescending);
    const absl::StatusOr<Arrays> last = RunCase(bench_, c, false);
    SetOrder(Order::kAscending);
    ASSERT_TRUE(last.ok()) << last.status();
    EXPECT_EQ(conformance::DifferentBits(*got, *last), "");
  }
}

TEST_P(CudaConformance, RefusesWhatIsTooSmall) {
  for (const Case* each : Cases()) {
    SCOPED_TRACE(each->op + " " + each->label);
    Case c = *each;
    if (c.rules.cuda_workspace_bytes > 0) {
      c.rules.cuda_workspace_bytes -= 4;
      EXPECT_EQ(RunCase(bench_, c, false).status().code(), absl::StatusCode::kInvalidArgument);
      c.rules.cuda_workspace_bytes += 4;
    }
    c.expected.emplace_back(conformance::Scalar(0));
    // One result too many is never right; split then has a part too many.
    EXPECT_EQ(RunCase(bench_, c, false).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(CudaFusedGelu, HasTheBitsOfTheTwoWithoutEpilogues) {
  EmulatedBench bench;
  for (const Case& c : conformance::FusedGeluCases()) {
    SCOPED_TRACE(c.op + " " + c.label);
    const absl::StatusOr<Arrays> apart = conformance::RunProductThenGelu(bench, c),
                                 got = RunCase(bench, c, false);
    ASSERT_TRUE(apart.ok()) << apart.status();
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(conformance::DifferentBits(*got, *apart), "");
  }
}

// An epilogue takes GELU of the sum that is not rounded yet; what is kept for backward are the same bits.
TEST(CudaFusedGelu, MatchesReferenceWithEpilogues) {
  EmulatedBench apart, fused(/*fuses=*/true);
  size_t different = 0;
  for (const Case& c : conformance::EpilogueCases()) {
    SCOPED_TRACE(c.op + " " + c.label);
    const absl::StatusOr<Arrays> two = RunCase(apart, c, false), got = RunCase(fused, c, false);
    ASSERT_TRUE(two.ok()) << two.status();
    ASSERT_TRUE(got.ok()) << got.status();
    const Case expected = conformance::WithGeluOfTheSum(c, /*tanh_error=*/0);
    EXPECT_EQ(Compare(expected, *got, fused.device_class()), "");
    if (got->size() == 2) {
      EXPECT_EQ(conformance::DifferentBits({(*got)[1]}, {(*two)[1]}), "");
    }
    different += !conformance::DifferentBits(*got, *two).empty();
  }
  EXPECT_GT(different, 0u) << "no epilogue was used";
}

TEST(CudaBiasGrad, HasTheBitsOfTheTwoWithoutEpilogues) {
  EmulatedBench bench;
  for (const Case& c : conformance::BiasGradCases(/*exact=*/false)) {
    SCOPED_TRACE(c.op + " " + c.label);
    const absl::StatusOr<Arrays> apart = conformance::RunProductAndSums(bench, c),
                                 got = RunCase(bench, c, false);
    ASSERT_TRUE(apart.ok()) << apart.status();
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(conformance::DifferentBits(*got, *apart), "");
  }
}

// A library adds up the same numbers in another order.
TEST(CudaBiasGrad, MatchesReferenceWithEpilogues) {
  EmulatedBench apart, fused(/*fuses=*/true);
  size_t different = 0;
  for (const bool exact : {true, false}) {
    for (const Case& c : conformance::BiasGradCases(exact)) {
      SCOPED_TRACE(c.op + " " + c.label);
      const absl::StatusOr<Arrays> two = RunCase(apart, c, false), got = RunCase(fused, c, false);
      ASSERT_TRUE(two.ok()) << two.status();
      ASSERT_TRUE(got.ok()) << got.status();
      EXPECT_EQ(Compare(c, *got, fused.device_class()), "");
      EXPECT_EQ(conformance::DifferentBits({(*got)[0]}, {(*two)[0]}), "");
      different += !conformance::DifferentBits({(*got)[1]}, {(*two)[1]}).empty();
    }
  }
  EXPECT_GT(different, 0u) << "no epilogue was used";
}

INSTANTIATE_TEST_SUITE_P(EveryOp, CudaConformance, testing::ValuesIn(conformance::Ops()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace ft::cuda::emulation
