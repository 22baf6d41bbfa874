#include "runtime/cost/transfers.h"

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

TEST(TransfersTest, InsideANodeACollectivePaysTheNodesLinkAlone) {
  const NodeLayout node{.ranks = 8, .nodes = 1, .most_on_node = 8, .least_on_node = 8};
  const double bytes = 4.0 * 7 / 8 / 2;
  EXPECT_NEAR(Seconds(proto::ALL_GATHER, node), 0.001 + 7 * 0.01 + bytes, kRounding);
  EXPECT_NEAR(Seconds(proto::REDUCE_SCATTER, node), 0.001 + 7 * 0.01 + bytes, kRounding);
  EXPECT_NEAR(Seconds(proto::ALL_REDUCE, node), 0.001 + 14 * 0.01 + 2 * bytes, kRounding);
}

TEST(TransfersTest, OneRankOnEachNodePaysTheNetworkAlone) {
  const NodeLayout spread{.ranks = 8, .nodes = 8, .most_on_node = 1, .least_on_node = 1};
  const double bytes = 4e9 * 7 / 8 / 1e8;
  EXPECT_NEAR(Seconds(proto::ALL_GATHER, spread), 0.003 + 7 * 0.1 + bytes, kRounding);
  // Up a tree of 8 nodes and down again.
  EXPECT_NEAR(Seconds(proto::ALL_REDUCE, spread), 0.003 + 2 * 3 * 0.1 + 2 * bytes, kRounding);
}

TEST(TransfersTest, AcrossNodesTheSlowerLevelCounts) {
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

TEST(TransfersTest, NobodyPassesOnWhatGoesFromEachToEach) {
  // `kBytes` are those of a rank: an eighth stays, the rest goes out by its own link.
  const NodeLayout node{.ranks = 8, .nodes = 1, .most_on_node = 8, .least_on_node = 8};
  EXPECT_NEAR(Seconds(proto::ALL_TO_ALL, node), 0.001 + 7 * 0.01 + 4.0 * 7 / 8 / 2, kRounding);
  const NodeLayout world{.ranks = 32, .nodes = 4, .most_on_node = 8, .least_on_node = 8};
  const double latency = 0.003 + 28 * 0.01 + 3 * 0.1;
  EXPECT_NEAR(Seconds(proto::ALL_TO_ALL, world), latency + 4e9 * 24 / 32 / 1e8, kRounding);
}

TEST(TransfersTest, OneRankTalksToNobodyAndCopiesGoTheirOwnWay) {
  EXPECT_EQ(Seconds(proto::ALL_REDUCE, {}), 0);
  EXPECT_NEAR(CopySeconds(TwoLinks(), kBytes), 0.5 + 4, kRounding);
}

void AddPoint(double at, double value, google::protobuf::RepeatedPtrField<Target::Point>* points) {
  Target::Point* point = points->Add();
  point->set_at(at);
  point->set_value(value);
}

TEST(TransfersTest, WhatWasMeasuredOverSuchAGroupCountsBeforeTheLinks) {
  Target target = TwoLinks();
  Target::Collective* measured = target.add_collectives();
  measured->set_opcode(proto::ALL_GATHER);
  measured->set_nodes(1);
  measured->set_ranks_on_node(8);
  AddPoint(1e6, 1e10, measured->mutable_bytes_per_s());
  AddPoint(1e8, 3e10, measured->mutable_bytes_per_s());
  const NodeLayout node{.ranks = 8, .nodes = 1, .most_on_node = 8, .least_on_node = 8};
  const auto seconds = [&](uint64_t bytes, proto::Opcode opcode = proto::ALL_GATHER) {
    return CollectiveSeconds(target, opcode, bytes, node);
  };
  EXPECT_NEAR(seconds(1'000'000), 1e-4, kRounding);
  EXPECT_NEAR(seconds(10'000), 1e-4, kRounding) << "smaller ones take no less than the smallest";
  // Halfway in the logarithm: 2e10 bytes a second.
  EXPECT_NEAR(seconds(10'000'000), 5e-4, kRounding);
  EXPECT_NEAR(seconds(3'000'000'000), 0.1, kRounding);
  EXPECT_NEAR(CollectiveCost(target, proto::ALL_GATHER, 10'000'000, node).latency_s, 1e-4, kRounding);
  EXPECT_NEAR(seconds(kBytes, proto::REDUCE_SCATTER), Seconds(proto::REDUCE_SCATTER, node), kRounding);
  const NodeLayout four{.ranks = 4, .nodes = 1, .most_on_node = 4, .least_on_node = 4};
  EXPECT_NEAR(CollectiveSeconds(target, proto::ALL_GATHER, kBytes, four), Seconds(proto::ALL_GATHER, four),
              kRounding);
}

TEST(TransfersTest, SmallMessagesReachAPartOfALink) {
  Target target = TwoLinks();
  // By bytes of a rank: half of the rate at 1000 of them, all at 100,000.
  AddPoint(1e3, 0.5, target.mutable_node_ramp());
  AddPoint(1e5, 1, target.mutable_node_ramp());
  const NodeLayout node{.ranks = 8, .nodes = 1, .most_on_node = 8, .least_on_node = 8};
  const auto bytes_s = [&](uint64_t bytes) {
    return CollectiveCost(target, proto::ALL_GATHER, bytes, node).bytes_s;
  };
  EXPECT_NEAR(bytes_s(8'000), 7e3 / 2e9 / 0.5, kRounding);
  EXPECT_NEAR(bytes_s(80'000), 7e4 / 2e9 / 0.75, kRounding);
  EXPECT_NEAR(bytes_s(8'000'000), 7e6 / 2e9, kRounding);
  AddPoint(1e3, 0.25, target.mutable_network_ramp());
  const NodeLayout spread{.ranks = 8, .nodes = 8, .most_on_node = 1, .least_on_node = 1};
  EXPECT_NEAR(CollectiveCost(target, proto::ALL_GATHER, 8'000, spread).bytes_s, 7e3 / 1e8 / 0.25, kRounding);
}

}  // namespace
}  // namespace ft
