#include "tools/ftexec/device_memory.h"

#include "gtest/gtest.h"
#include "runtime/plan/testing/targets.h"
#include "runtime/plan/testing/tiny_plan.h"

namespace ft {
namespace {

TEST(DeviceMemoryTest, EachHasItsPart) {
  EXPECT_EQ(
      MemoryLine({.used = 900, .used_before = 100, .arena = 500}),
      "device memory in use: 900 bytes, 500 of them the arena, 300 context, libraries and communicators, "
      "100 other processes\n");
  EXPECT_EQ(MemoryLine({}), "");
  // Others have gone meanwhile.
  EXPECT_EQ(DeviceMemoryUse({.used = 550, .used_before = 100, .arena = 500}).beside(), 0u);
  EXPECT_EQ(
      MemoryLine({.used = 550, .used_before = 100, .arena = 500}),
      "device memory in use: 550 bytes, 500 of them the arena, 0 context, libraries and communicators, 50 "
      "other processes\n");
}

class LowAnnouncementTest : public testing::Test {
 protected:
  LowAnnouncementTest() : plan_(TinyPlan()) {
    *plan_.mutable_target() = RoundTarget();
    plan_.mutable_target()->set_cuda(true);
    plan_.mutable_target()->set_beside_bytes(1 << 20);
  }
  // What is said of `beside` bytes.
  std::string Line(uint64_t beside, DeviceClass device = DeviceClass::kCuda, int ranks = 1) {
    const absl::StatusOr<BoundPlan> bound = BindPlan(plan_, {.shard = ranks}, device);
    EXPECT_TRUE(bound.ok()) << bound.status();
    return LowAnnouncement(plan_, *bound, {.used = 7 + 1000 + beside, .used_before = 7, .arena = 1000});
  }

  proto::Plan plan_;
};

TEST_F(LowAnnouncementTest, MoreThanWasAnnouncedIsToldInOneLine) {
  EXPECT_EQ(Line(1 << 20), "");
  EXPECT_EQ(
      Line(3 << 20),
      "3.00 MiB lie beside the arena (context, libraries, communicators), 1.00 MiB were announced by round: "
      "budgets and ftc explain reckon with too little; a target of your own with larger memory.beside_mib "
      "or memory.communicator_mib puts it right");
}

TEST_F(LowAnnouncementTest, CommunicatorsCount) {
  plan_.mutable_target()->set_communicator_bytes(1 << 20);
  const uint64_t of_two = uint64_t{1 + 2 * (1 + 32)} << 20;  // with their staging
  EXPECT_EQ(Line(of_two, DeviceClass::kCuda, 4), "");
  EXPECT_NE(Line(of_two + 1, DeviceClass::kCuda, 4), "");
}

TEST_F(LowAnnouncementTest, WhatWasNotAnnouncedCannotBeLow) {
  EXPECT_EQ(Line(3 << 20, DeviceClass::kCpu), "");
  plan_.mutable_target()->set_beside_bytes(0);
  EXPECT_EQ(Line(3 << 20), "");
  plan_.clear_target();
  EXPECT_EQ(Line(3 << 20), "");
}

}  // namespace
}  // namespace ft
