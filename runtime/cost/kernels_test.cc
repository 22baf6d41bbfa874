#include "runtime/cost/kernels.h"

#include "gtest/gtest.h"
#include "runtime/plan/testing/targets.h"

namespace ft {
namespace {

constexpr double kAlmost = 1e-12;

TEST(KernelsTest, KernelsPayForTheirTypeOrTheirBytes) {
  Target target = RoundTarget();
  target.set_kernel_latency_s(1);
  target.mutable_f32()->set_reached(10);
  target.mutable_bf16()->set_reached(100);
  target.mutable_f16()->set_reached(50);
  target.set_memory_bytes_per_s(1000);
  EXPECT_NEAR(KernelSeconds(target, 1000, 0, proto::F32), 1 + 100, kAlmost);
  EXPECT_NEAR(KernelSeconds(target, 1000, 0, proto::BF16), 1 + 10, kAlmost);
  EXPECT_NEAR(KernelSeconds(target, 1000, 0, proto::F16), 1 + 20, kAlmost);
  EXPECT_NEAR(KernelSeconds(target, 1000, 0, proto::I32), 1 + 100, kAlmost);
  EXPECT_NEAR(KernelSeconds(target, 1000, 500'000, proto::F32), 1 + 500, kAlmost);
}

// 10 multiprocessors, tiles of 100 x 200.
Target::Products Tiles() {
  Target::Products products;
  products.set_multiprocessors(10);
  products.set_tile_rows(100);
  products.set_tile_columns(200);
  products.set_half_k(50);
  return products;
}

TEST(KernelsTest, TheLastWaveAndTheEdgesOfAProductAreLost) {
  // 20 tiles: two full waves; 21: three for the work of 2.1.
  EXPECT_DOUBLE_EQ(WavePart(Tiles(), {.rows = 1000, .columns = 400, .summed = 1}, 0), 1);
  EXPECT_DOUBLE_EQ(WavePart(Tiles(), {.rows = 2100, .columns = 200, .summed = 1}, 0), 2.1 / 3);
  // Half a tile in each of two columns of tiles: the work of 15 in the time of 20.
  EXPECT_DOUBLE_EQ(WavePart(Tiles(), {.rows = 1000, .columns = 300, .summed = 1}, 0), 0.75);
  // 20 tiles on the 6 that are left: four waves of ten.
  EXPECT_DOUBLE_EQ(WavePart(Tiles(), {.rows = 1000, .columns = 400, .summed = 1}, 4), 0.5);
  // Six tiles whose sums are split in three: 18 on 10, two waves; in two they are 12, two waves as well.
  EXPECT_DOUBLE_EQ(WavePart(Tiles(), {.rows = 600, .columns = 200, .summed = 6144}, 0), 0.9);
  EXPECT_DOUBLE_EQ(WavePart(Tiles(), {.rows = 600, .columns = 200, .summed = 4095}, 0), 0.6);
  EXPECT_EQ(WavePart({}, {.rows = 1, .columns = 1, .summed = 1}, 0), 1) << "not known";
}

TEST(KernelsTest, ShortSumsReachLess) {
  EXPECT_DOUBLE_EQ(SizePart(Tiles(), {.rows = 9, .columns = 9, .summed = 50}), 0.5);
  EXPECT_DOUBLE_EQ(SizePart(Tiles(), {.rows = 9, .columns = 9, .summed = 150}), 0.75);
  EXPECT_EQ(SizePart({}, {.rows = 1, .columns = 1, .summed = 1}), 1);
  Target::Products sizes = Tiles();
  sizes.set_half_rows(100);
  sizes.set_half_columns(25);
  EXPECT_DOUBLE_EQ(SizePart(sizes, {.rows = 300, .columns = 100, .summed = 150}), 0.75 * 0.75 * 0.8);
  Target target = RoundTarget();
  target.mutable_bf16()->set_reached(1000);
  *target.mutable_products() = Tiles();
  target.set_sustained(0.5);
  EXPECT_DOUBLE_EQ(ProductRate(target, proto::BF16, {.rows = 2100, .columns = 200, .summed = 150}, 0),
                   1000 * 0.5 * 0.7 * 0.75);
}

TEST(KernelsTest, AttentionHasTheRateOfItsLengthHeadAndDirection) {
  Target target = RoundTarget();
  target.mutable_bf16()->set_reached(1000);
  EXPECT_EQ(AttentionRate(target, proto::BF16, 128, 512, false), 1000) << "nothing was measured";
  for (const uint32_t size : {64u, 128u}) {
    Target::Attention* rates = target.add_attention();
    rates->set_head_size(size);
    for (const auto& [at, value] : {std::pair(512.0, 200.0), std::pair(2048.0, 400.0)}) {
      Target::Point* forward = rates->add_forward();
      forward->set_at(at);
      forward->set_value(value + size);
      Target::Point* backward = rates->add_backward();
      backward->set_at(at);
      backward->set_value(value / 2);
    }
  }
  EXPECT_DOUBLE_EQ(AttentionRate(target, proto::BF16, 64, 512, false), 264);
  EXPECT_DOUBLE_EQ(AttentionRate(target, proto::BF16, 128, 1024, false), 428) << "halfway in the logarithm";
  EXPECT_DOUBLE_EQ(AttentionRate(target, proto::F16, 112, 100'000, true), 200) << "the nearest head, the end";
  EXPECT_EQ(AttentionRate(target, proto::F32, 64, 512, false), 1e11) << "nothing was measured in fp32";
  *target.add_attention() = target.attention(0);
  target.mutable_attention(2)->set_f32(true);
  target.mutable_attention(2)->mutable_forward(0)->set_value(7);
  EXPECT_DOUBLE_EQ(AttentionRate(target, proto::F32, 128, 512, false), 7);
  EXPECT_DOUBLE_EQ(AttentionRate(target, proto::BF16, 64, 512, false), 264);
}

TEST(KernelsTest, MemoryReachesMoreWithLargeKernels) {
  Target target = RoundTarget();
  EXPECT_DOUBLE_EQ(MemorySeconds(target, 1e10), 1);
  for (const auto& [at, value] : {std::pair(1e6, 1e9), std::pair(1e8, 3e9)}) {
    Target::Point* point = target.add_memory();
    point->set_at(at);
    point->set_value(value);
  }
  EXPECT_DOUBLE_EQ(MemorySeconds(target, 1e5), 1e-4);
  EXPECT_DOUBLE_EQ(MemorySeconds(target, 1e7), 5e-3);
  EXPECT_DOUBLE_EQ(MemorySeconds(target, 3e9), 1);
}

TEST(KernelsTest, MoreRanksWaitLonger) {
  Target target = RoundTarget();
  EXPECT_EQ(JitterOf(target, 512), 0);
  for (const auto& [at, value] : {std::pair(1, 0.0), std::pair(64, 0.03)}) {
    Target::Point* point = target.add_jitter();
    point->set_at(at);
    point->set_value(value);
  }
  EXPECT_EQ(JitterOf(target, 1), 0);
  EXPECT_DOUBLE_EQ(JitterOf(target, 8), 0.015);
  EXPECT_DOUBLE_EQ(JitterOf(target, 512), 0.03);
}

}  // namespace
}  // namespace ft
