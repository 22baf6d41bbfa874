#include "runtime/plan/target.h"

#include <limits>
#include <string>

#include "gtest/gtest.h"
#include "runtime/plan/testing/targets.h"

namespace ft {
namespace {

constexpr double kRounding = 1e-12;
constexpr uint64_t kBytes = 4'000'000'000;

Target TwoLinks() {
  Target target = RoundTarget();
  SetLink(0.001, 0.01, 2e9, target.mutable_node());
  SetLink(0.003, 0.1, 1e8, target.mutable_network());
  SetLink(0.5, 0, 1e9, target.mutable_copies());
  return target;
}

double Seconds(proto::Opcode opcode, const NodeLayout& layout) {
  return CollectiveSeconds(TwoLinks(), opcode, kBytes, layout);
}

TEST(TargetTest, InsideANodeACollectivePaysTheNodesLinkAlone) {
  const NodeLayout node{.ranks = 8, .nodes = 1, .most_on_node = 8, .least_on_node = 8};
  const double bytes = 4.0 * 7 / 8 / 2;
  EXPECT_NEAR(Seconds(proto::ALL_GATHER, node), 0.001 + 7 * 0.01 + bytes, kRounding);
  EXPECT_NEAR(Seconds(proto::REDUCE_SCATTER, node), 0.001 + 7 * 0.01 + bytes, kRounding);
  EXPECT_NEAR(Seconds(proto::ALL_REDUCE, node), 0.001 + 14 * 0.01 + 2 * bytes, kRounding);
}

TEST(TargetTest, OneRankOnEachNodePaysTheNetworkAlone) {
  const NodeLayout spread{.ranks = 8, .nodes = 8, .most_on_node = 1, .least_on_node = 1};
  const double bytes = 4e9 * 7 / 8 / 1e8;
  EXPECT_NEAR(Seconds(proto::ALL_GATHER, spread), 0.003 + 7 * 0.1 + bytes, kRounding);
  // Up a tree of 8 nodes and down again.
  EXPECT_NEAR(Seconds(proto::ALL_REDUCE, spread), 0.003 + 2 * 3 * 0.1 + 2 * bytes, kRounding);
}

TEST(TargetTest, AcrossNodesTheSlowerLevelCounts) {
  // 4 nodes of 8: each rank takes an eighth of what comes from the other nodes.
  const NodeLayout world{.ranks = 32, .nodes = 4, .most_on_node = 8, .least_on_node = 8};
  const double latency = 0.003 + 28 * 0.01 + 3 * 0.1;
  EXPECT_NEAR(Seconds(proto::ALL_GATHER, world), latency + 4e9 / 8 * 3 / 4 / 1e8, kRounding);
  Target fast = TwoLinks();
  fast.mutable_network()->set_bytes_per_s(1e12);
  EXPECT_NEAR(CollectiveSeconds(fast, proto::ALL_GATHER, kBytes, world), latency + 4e9 * 7 / 8 / 2e9,
              kRounding);
  // 8 + 4 ranks: through 4 adapters come the 8 parts of the other node.
  const NodeLayout uneven{.ranks = 12, .nodes = 2, .most_on_node = 8, .least_on_node = 4};
  EXPECT_NEAR(Seconds(proto::REDUCE_SCATTER, uneven), 0.003 + 10 * 0.01 + 0.1 + 4e9 * 8 / 12 / 4 / 1e8,
              kRounding);
}

TEST(TargetTest, OneRankTalksToNobodyAndCopiesGoTheirOwnWay) {
  EXPECT_EQ(Seconds(proto::ALL_REDUCE, {}), 0);
  EXPECT_NEAR(CopySeconds(TwoLinks(), kBytes), 0.5 + 4, kRounding);
}

TEST(TargetTest, KernelsPayForTheirTypeOrTheirBytes) {
  Target target = RoundTarget();
  target.set_kernel_latency_s(1);
  target.mutable_f32()->set_reached(10);
  target.mutable_bf16()->set_reached(100);
  target.mutable_f16()->set_reached(50);
  target.set_memory_bytes_per_s(1000);
  EXPECT_NEAR(KernelSeconds(target, 1000, 0, proto::F32), 1 + 100, kRounding);
  EXPECT_NEAR(KernelSeconds(target, 1000, 0, proto::BF16), 1 + 10, kRounding);
  EXPECT_NEAR(KernelSeconds(target, 1000, 0, proto::F16), 1 + 20, kRounding);
  EXPECT_NEAR(KernelSeconds(target, 1000, 0, proto::I32), 1 + 100, kRounding);
  EXPECT_NEAR(KernelSeconds(target, 1000, 500'000, proto::F32), 1 + 500, kRounding);
}

TEST(TargetTest, ImpossibleFiguresAreNamed) {
  EXPECT_EQ(VerifyTarget(RoundTarget()), absl::OkStatus());
  const auto refused = [](auto&& spoil, const std::string& named) {
    Target target = RoundTarget();
    spoil(target);
    const absl::Status status = VerifyTarget(target);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << named;
    EXPECT_NE(std::string(status.message()).find(named), std::string::npos) << status;
  };
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double bad : {0.0, -1.0, kNan, kInfinity}) {
    refused([&](Target& t) { t.mutable_f32()->set_reached(bad); }, "f32.reached");
    refused([&](Target& t) { t.set_memory_bytes_per_s(bad); }, "memory_bytes_per_s");
    refused([&](Target& t) { t.mutable_network()->set_bytes_per_s(bad); }, "network.bytes_per_s");
  }
  for (const double bad : {-1.0, kNan, kInfinity}) {
    refused([&](Target& t) { t.mutable_bf16()->set_peak(bad); }, "bf16.peak");
    refused([&](Target& t) { t.set_kernel_latency_s(bad); }, "kernel_latency_s");
    refused([&](Target& t) { t.mutable_node()->set_step_s(bad); }, "node.step_s");
    refused([&](Target& t) { t.mutable_copies()->set_latency_s(bad); }, "copies.latency_s");
  }
  refused([](Target& t) { t.mutable_bf16()->set_peak(t.bf16().reached() / 2); }, "reaches more in bf16");
  refused([](Target& t) { t.set_ranks_per_node(0); }, "ranks_per_node");
  refused([](Target& t) { t.set_ranks_per_node(1 << 30); }, "ranks_per_node");
  refused([](Target& t) { t.clear_name(); }, "a name of 0 bytes");
  refused([](Target& t) { t.set_memory_bytes(~uint64_t{0}); }, "memory_bytes");
  refused([](Target& t) { t.set_beside_bytes(~uint64_t{0}); }, "beside_bytes");
  refused([](Target& t) { t.set_communicator_bytes(uint64_t{1} << 51); }, "communicator_bytes");
}

}  // namespace
}  // namespace ft
