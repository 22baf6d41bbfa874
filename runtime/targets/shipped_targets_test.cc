#include "runtime/targets/shipped_targets.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/cost/kernels.h"
#include "runtime/cost/transfers.h"

namespace ft {
namespace {

TEST(ShippedTargetsTest, AllAreThereAndPossible) {
  const std::vector<std::string> names = TargetNames();
  for (const char* name :
       {"cpu", "cpu-2s", "a10", "l40s", "rtx4090", "a100", "a100-ib", "a100-roce", "h100", "h100-ib",
        "h100-efa", "h100-roce", "h100-96gb-500w", "h200", "h200-ib", "b200", "b200-ib"})
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
  for (const std::string& name : names) {
    const Target* target = FindTarget(name);
    ASSERT_NE(target, nullptr) << name;
    EXPECT_EQ(target->name(), name);
    EXPECT_EQ(VerifyTarget(*target), absl::OkStatus()) << name;
    EXPECT_EQ(target->cuda(), name != "cpu" && name != "cpu-2s");
    EXPECT_EQ(target->memory_bytes() > 0, target->cuda()) << name;
    EXPECT_GT(target->memory_bytes_per_s(), target->node().bytes_per_s()) << name;
    // Of the host: more than the link takes of it, less than a GPU's own. A CPU is its host.
    EXPECT_EQ(target->host_memory_bytes_per_s() > target->copies().bytes_per_s(), target->cuda()) << name;
    EXPECT_LT(target->host_memory_bytes_per_s(), target->memory_bytes_per_s()) << name;
    EXPECT_GT(target->node().bytes_per_s(), target->network().bytes_per_s()) << name;
    for (const Target::Rate* rate : {&target->f32(), &target->bf16(), &target->f16()}) {
      if (rate->peak() > 0) {
        EXPECT_LT(rate->reached(), rate->peak()) << name;
      }
    }
  }
  EXPECT_EQ(FindTarget("abacus"), nullptr);
  EXPECT_EQ(FindTarget("cp"), nullptr);
}

// GPUs know what products and transfers beside each other reach; a nominal CPU is as simple as it was.
TEST(ShippedTargetsTest, GpusHaveAllTerms) {
  for (const std::string& name : TargetNames()) {
    const Target& target = *FindTarget(name);
    EXPECT_EQ(target.products().multiprocessors() > 0, target.cuda()) << name;
    EXPECT_EQ(target.overlaps_size(), target.cuda() ? 4 : 0) << name;
    EXPECT_EQ(target.jitter_size() > 0, target.cuda()) << name;
    EXPECT_LE(target.ByteSizeLong(), kMostTargetBytes / 16) << name;
  }
  EXPECT_EQ(FindTarget("h100-efa")->collectives_size(), 3);
  EXPECT_EQ(FindTarget("h100")->attention_size(), 2);
}

TEST(ShippedTargetsTest, TheShortNameIsTheSameMachine) {
  Target shorter = *FindTarget("h100");
  shorter.set_name("h100-ib");
  EXPECT_EQ(shorter.SerializeAsString(), FindTarget("h100-ib")->SerializeAsString());
}

// GB/s of whole buffers that all-gathers of large messages reached on 8 H100 (collective_interpolator_data.h
// of openxla/xla) and the bus bandwidth, GB/s, of reduce-scatters over nodes of 8 (NVIDIA/nccl#1229).
constexpr std::pair<double, double> kInNode[] = {
    {32, 259}, {64, 314}, {128, 344}, {512, 386}, {2048, 402}};                            // MiB
constexpr std::pair<int, double> kBetween[] = {{4, 360}, {8, 345}, {16, 320}, {32, 300}};  // nodes

// TFLOP/s of products of n x n x n in bf16 on an H100 (matmul_interpolator_data.h of openxla/xla), in short
// bursts. Small ones have smaller tiles than a target knows: 512 reaches 43.6, of which a third is missing
// here.
TEST(ShippedTargetsTest, ProductsAreThoseThatWereMeasured) {
  Target h100 = *FindTarget("h100-ib");
  h100.set_sustained(1);
  for (const auto& [n, measured] : {std::pair(2048.0, 641.0), std::pair(4096.0, 780.0)}) {
    const auto extent = static_cast<uint64_t>(n);
    const double rate =
        ProductRate(h100, proto::BF16, {.rows = extent, .columns = extent, .summed = extent}, 0);
    const double flops = 2 * n * n * n;
    const double seconds = h100.kernel_latency_s() + flops / rate;
    EXPECT_NEAR(flops / seconds * 1e-12 / measured, 1, 0.15) << n;
  }
}

TEST(ShippedTargetsTest, CollectivesAreThoseThatWereMeasured) {
  const Target& h100 = *FindTarget("h100-ib");
  const NodeLayout node{.ranks = 8, .nodes = 1, .most_on_node = 8, .least_on_node = 8};
  for (const auto& [mebibytes, measured] : kInNode) {
    const double bytes = mebibytes * (1 << 20);
    const double seconds = CollectiveSeconds(h100, proto::ALL_GATHER, static_cast<uint64_t>(bytes), node);
    EXPECT_NEAR(bytes / seconds * 1e-9 / measured, 1, 0.1) << mebibytes << " MiB";
  }
  for (const auto& [nodes, measured] : kBetween) {
    const int ranks = 8 * nodes;
    const NodeLayout layout{.ranks = ranks, .nodes = nodes, .most_on_node = 8, .least_on_node = 8};
    const double bytes = 16.0 * (uint64_t{1} << 30);
    const double seconds =
        CollectiveSeconds(h100, proto::REDUCE_SCATTER, static_cast<uint64_t>(bytes), layout);
    EXPECT_NEAR(bytes / seconds * (ranks - 1) / ranks * 1e-9 / measured, 1, 0.15) << nodes << " nodes";
  }
}

}  // namespace
}  // namespace ft
