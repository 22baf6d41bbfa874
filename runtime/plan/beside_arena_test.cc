#include "runtime/plan/beside_arena.h"

#include "gtest/gtest.h"
#include "runtime/plan/channels.h"
#include "runtime/plan/testing/targets.h"
#include "runtime/plan/testing/tiny_plan.h"

namespace ft {
namespace {

constexpr uint64_t kContext = 700, kCommunicator = 90, kStaging = uint64_t{32} << 20;

Target Announcing() {
  Target target = RoundTarget();
  target.set_cuda(true);
  target.set_beside_bytes(kContext);
  target.set_communicator_bytes(kCommunicator);
  return target;
}

BesideArena Of(const proto::Plan& plan, const Mesh& mesh) {
  return BesideArenaOf(Announcing(), plan, mesh, DeviceClass::kCuda);
}

void ExpectCommunicators(const BesideArena& beside, uint64_t number) {
  EXPECT_EQ(beside.context, kContext);
  EXPECT_EQ(beside.communicators, number * kCommunicator);
  EXPECT_EQ(beside.staging, number * kStaging);
  EXPECT_EQ(beside.total(), kContext + number * (kCommunicator + kStaging));
}

TEST(BesideArenaTest, EachCommunicatorOfSeveralRanksTakesItsBuffers) {
  ExpectCommunicators(Of(TinyPlan(), {}), 0);
  ExpectCommunicators(Of(TinyPlan({.shard = false}), {.replica = 4}), 1);  // reductions alone
  ExpectCommunicators(Of(TinyPlan(), {.shard = 4}), 2);                    // and gathers
  // Gathers and reductions over shard, reductions over replica and the world.
  const proto::Plan hybrid = TinyPlan({.two_axes = true});
  ExpectCommunicators(Of(hybrid, {.replica = 2, .shard = 3}), 4);
  ExpectCommunicators(Of(hybrid, {.replica = 1, .shard = 3}), 2);
  ExpectCommunicators(Of(hybrid, {.replica = 3, .shard = 1}), 2);  // of the streams reduce and replica
}

TEST(BesideArenaTest, WhatIsNotAnnouncedIsNothing) {
  const Mesh mesh = {.shard = 4};
  Target target = Announcing();
  EXPECT_TRUE(AnnouncesBesideArena(target));
  EXPECT_EQ(BesideArenaOf(target, TinyPlan(), mesh, DeviceClass::kCpu).total(), 0u);
  target.set_cuda(false);
  EXPECT_EQ(BesideArenaOf(target, TinyPlan(), mesh, DeviceClass::kCuda).total(), 0u);
  target.set_cuda(true);
  target.set_beside_bytes(0);
  EXPECT_EQ(BesideArenaOf(target, TinyPlan(), mesh, DeviceClass::kCuda).communicators, 2 * kCommunicator);
  target.set_communicator_bytes(0);
  EXPECT_FALSE(AnnouncesBesideArena(target));
  EXPECT_EQ(BesideArenaOf(target, TinyPlan(), mesh, DeviceClass::kCuda).total(), 0u) << "nor staging alone";
}

}  // namespace
}  // namespace ft
