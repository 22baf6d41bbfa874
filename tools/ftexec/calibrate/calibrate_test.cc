// What calibration makes of times: medians, spreads, fits.
#include "gtest/gtest.h"
#include "runtime/cost/kernels.h"
#include "tools/ftexec/calibrate/machine.h"
#include "tools/ftexec/calibrate/plan_kernels.h"
#include "tools/ftexec/calibrate/products.h"
#include "tools/ftexec/calibrate/sample.h"

namespace ft {
namespace {

TEST(SampleTest, MedianAndHalfOfTheMiddleHalf) {
  EXPECT_EQ(Summarize({}).seconds, 0);
  EXPECT_EQ(Summarize({3}).seconds, 3);
  EXPECT_EQ(Summarize({3}).spread, 0);
  const Sample sample = Summarize({5, 1, 4, 2, 3});  // quartiles 2 and 4
  EXPECT_EQ(sample.seconds, 3);
  EXPECT_DOUBLE_EQ(sample.spread, 1.0 / 3);
  EXPECT_EQ(Summarize({1, 2}).seconds, 1.5);
  EXPECT_EQ(Summarize({1, 1, 1, 1, 100}).spread, 0) << "one that was disturbed";
  EXPECT_EQ(Summarize({0, 0}).spread, 0);
  EXPECT_EQ(Summarize({1, 1, 1, 1000, 1000}).spread, kMostSpread);
  EXPECT_EQ(MiddleOf({}), 0);
  EXPECT_EQ(MiddleOf({9, 1, 5}), 5);
}

Target Machine() {
  Target target;
  target.mutable_f32()->set_reached(2e11);
  target.mutable_bf16()->set_reached(3e11);
  target.mutable_products()->set_half_k(24);
  target.mutable_products()->set_half_rows(8);
  target.mutable_products()->set_half_columns(64);
  return target;
}

std::vector<TimedProduct> Products(const Target& machine) {
  std::vector<TimedProduct> timed;
  const uint64_t extents[][3] = {
      {512, 768, 768}, {64, 32, 2000}, {2048, 16, 64}, {16, 2048, 128}, {128, 128, 16}};
  for (const proto::DType dtype : {proto::F32, proto::BF16})
    for (const auto& [rows, columns, summed] : extents) {
      const double flops = 2.0 * static_cast<double>(rows * columns * summed);
      timed.push_back(
          {dtype, rows, columns, summed, flops / ProductRate(machine, dtype, {rows, columns, summed}, 0)});
    }
  return timed;
}

TEST(FitProductsTest, FindsTheFormThatTimesHave) {
  Target fitted;
  EXPECT_NEAR(FitProducts(Products(Machine()), fitted), 0, 1e-9);
  EXPECT_NEAR(fitted.f32().reached(), 2e11, 1);
  EXPECT_NEAR(fitted.bf16().reached(), 3e11, 1);
  EXPECT_EQ(fitted.products().half_k(), 24);
  EXPECT_EQ(fitted.products().half_rows(), 8);
  EXPECT_EQ(fitted.products().half_columns(), 64);
}

TEST(FitProductsTest, SaysHowFarProductsAreOff) {
  std::vector<TimedProduct> timed = Products(Machine());
  // Every product in both types: one a tenth longer, the other as much shorter, is what no form of both has.
  for (TimedProduct& product : timed) product.seconds *= product.summed % 3 == 0 ? 1.1 : 1 / 1.1;
  Target fitted;
  const double error = FitProducts(timed, fitted);
  EXPECT_GT(error, 0.01);
  EXPECT_LT(error, 0.1);
}

TEST(DoubtTest, OfMachinesThatWereNotQuiet) {
  Target target;
  target.mutable_measured()->set_drift(0.02);
  target.mutable_measured()->set_memory(0.05);
  target.mutable_measured()->set_kernels(0.5);
  EXPECT_EQ(DoubtOf(target, JustMeasured::kMachine), "");
  target.mutable_measured()->set_memory(0.3);
  EXPECT_EQ(DoubtOf(target, JustMeasured::kMachine),
            "this machine was not quiet: repeats spread by 30%; measure again when nothing else runs");
  target.mutable_measured()->set_drift(0.04);
  EXPECT_EQ(DoubtOf(target, JustMeasured::kMachine),
            "this machine was not quiet: one product took 4% more or less after than before, repeats spread "
            "by 30%; "
            "measure again when nothing else runs");
  target.mutable_measured()->set_products(0.2);
  EXPECT_EQ(DoubtOf(target, JustMeasured::kMachine),
            "this machine was not quiet: one product took 4% more or less after than before, repeats spread "
            "by 30%, "
            "products are 20% off what is fitted to them; measure again when nothing else runs");
  EXPECT_EQ(DoubtOf(target, JustMeasured::kKernels),
            "this machine was not quiet: repeats spread by 50%; measure again when nothing else runs");
  target.mutable_measured()->set_drift(0);
  target.mutable_measured()->set_memory(0);
  EXPECT_EQ(
      DoubtOf(target, JustMeasured::kMachine),
      "this machine was not quiet, or no form fits its products: products are 20% off what is fitted to "
      "them; measure again when nothing else runs");
}

TEST(FitLinkTest, TakesAllSizesByTheirParts) {
  std::vector<TimedBytes> timed;
  for (const double bytes : {1e5, 1e6, 1e7, 1e8}) timed.push_back({bytes, 2e-5 + bytes / 1e10});
  EXPECT_NEAR(FitLink(timed).latency, 2e-5, 1e-12);
  EXPECT_NEAR(FitLink(timed).bytes_per_s, 1e10, 1);
  // One that was disturbed moves the rate by less than its own part.
  timed.back().seconds *= 1.2;
  EXPECT_GT(FitLink(timed).bytes_per_s, 1e10 / 1.2);
  EXPECT_LT(FitLink(timed).bytes_per_s, 1e10);
  const LinkTime without = FitLink({{1e5, 1e-5}, {1e6, 2e-4}});
  EXPECT_EQ(without.latency, 0);
  EXPECT_GT(without.bytes_per_s, 5e9);
  EXPECT_DOUBLE_EQ(FitLink({{1e6, 2e-4}, {2e6, 1e-4}}).bytes_per_s, 2e10);
  EXPECT_DOUBLE_EQ(FitLink({{1e6, 1e-4}}).bytes_per_s, 1e10);
}

Target::Measured Layout(uint32_t ranks, uint32_t threads) {
  Target::Measured layout;
  layout.set_ranks_on_node(ranks);
  layout.set_threads(threads);
  return layout;
}

TEST(TakeTimedLayoutTest, KeepsWithWhatAllElseWasMeasured) {
  Target target;
  EXPECT_TRUE(TakeTimedLayout(Layout(1, 2), target)) << "of a data sheet";
  EXPECT_EQ(LayoutText(target.measured()), "1 rank a host, 2 threads each");
  EXPECT_FALSE(TakeTimedLayout(Layout(1, 1), target)) << "kernels are all that was measured";
  EXPECT_EQ(LayoutText(target.measured()), "1 rank a host, 1 thread each");
  EXPECT_EQ(target.measured().timed_ranks_on_node(), 0u);
  target.mutable_measured()->add_dtypes(proto::F32);
  EXPECT_FALSE(TakeTimedLayout(Layout(2, 1), target));
  EXPECT_EQ(LayoutText(target.measured()), "1 rank a host, 1 thread each");
  EXPECT_EQ(TimedLayoutText(target.measured()), "2 ranks a host, 1 thread each");
  EXPECT_TRUE(TakeTimedLayout(Layout(2, 1), target));
  EXPECT_FALSE(TakeTimedLayout(Layout(1, 1), target));
  EXPECT_EQ(target.measured().timed_ranks_on_node(), 0u);
}

TEST(TakeTimedKernelsTest, LeavesOutTheShortestWhereThereIsNoRoom) {
  Target target;
  std::vector<Target::TimedKernel> own(1000), others(3000);
  for (size_t i = 0; i < own.size() + others.size(); ++i) {
    Target::TimedKernel& kernel = i < own.size() ? own[i] : others[i - own.size()];
    kernel.set_key((i + 1) << 48);
    kernel.set_seconds(1e-6 * static_cast<double>(i + 1));
    kernel.set_share(0.5);
    kernel.set_spread(0.01);
  }
  others[0] = own[5];
  const int without_room = TakeTimedKernels(own, others, target);
  EXPECT_LE(target.ByteSizeLong(), kMostTargetBytes);
  EXPECT_EQ(target.timed_kernels_size() + without_room, 3999);
  EXPECT_GT(target.timed_kernels_size(), 1300);
  EXPECT_LT(target.timed_kernels_size(), 3000);
  // All of the plan's own, and of the others the longest.
  EXPECT_EQ(target.timed_kernels(0).key(), uint64_t{1} << 48);
  EXPECT_EQ(target.timed_kernels(999).key(), uint64_t{1000} << 48);
  EXPECT_EQ(target.timed_kernels(target.timed_kernels_size() - 1).key(), uint64_t{4000} << 48);
  EXPECT_EQ(TakeTimedKernels({own[0]}, {own[1]}, target), 0);
  EXPECT_EQ(target.timed_kernels_size(), 2);
}

}  // namespace
}  // namespace ft
