#include "runtime/cost/replay.h"

#include "gtest/gtest.h"

namespace ft {
namespace {

constexpr double kNear = 1e-9;

ReplayItem Item(int stream, double seconds, Occupies occupies, std::vector<int> after = {}) {
  ReplayItem item{.stream = stream, .cost = {}, .launched_s = 0, .after = std::move(after)};
  item.cost.body_s = seconds;
  item.cost.occupies = occupies;
  return item;
}

TEST(ReplayTest, StreamsRunInOrderAndWaitForOthers) {
  const auto played = Replay({Item(0, 2, Occupies::kDevice), Item(1, 5, Occupies::kNodeLink, {0}),
                              Item(0, 1, Occupies::kDevice), Item(0, 0, Occupies::kNothing, {1})},
                             2);
  EXPECT_NEAR(played[1].begin, 2, kNear);
  EXPECT_NEAR(played[2].end, 3, kNear);
  EXPECT_NEAR(played[3].reached, 3, kNear);
  EXPECT_NEAR(played[3].ready, 7, kNear);
  EXPECT_EQ(played[3].last, 1);
  EXPECT_EQ(played[1].last, 0);
  EXPECT_EQ(played[0].last, -1);
}

TEST(ReplayTest, TheWorstOfTheTransfersBesideAKernelCounts) {
  std::vector<ReplayItem> items = {Item(0, 10, Occupies::kDevice), Item(1, 3, Occupies::kNodeLink),
                                   Item(2, 6, Occupies::kToDevice)};
  items[0].cost.beside_transfer = {3, 1, 1, 2};
  items[1].cost.kind = TransferKind::kAllGather;
  items[2].cost.kind = TransferKind::kCopy;
  // 3 s at a third, 3 s at a half, and what is left of 10: 7.5 s.
  EXPECT_NEAR(Replay(items, 3)[0].end, 6 + 7.5, kNear);
}

TEST(ReplayTest, ThreeOnALinkHaveAThirdEachUntilOneIsDone) {
  const auto played = Replay({Item(0, 1, Occupies::kNetwork), Item(1, 2, Occupies::kNetwork),
                              Item(2, 2, Occupies::kNetwork), Item(3, 2, Occupies::kNodeLink)},
                             4);
  EXPECT_NEAR(played[0].end, 3, kNear);
  EXPECT_NEAR(played[1].end, 5, kNear);
  EXPECT_NEAR(played[2].end, 5, kNear);
  EXPECT_NEAR(played[3].end, 2, kNear) << "another link";
}

TEST(ReplayTest, ALatencyIsNeitherSharedNorSlowed) {
  std::vector<ReplayItem> items = {Item(0, 4, Occupies::kDevice), Item(1, 1, Occupies::kNodeLink)};
  items[0].cost.beside_transfer = {2, 2, 2, 2};
  items[1].cost.latency_s = 3;
  items[1].cost.beside_kernels = 2;
  // 3 s apart; then the kernel does its last second in 2, the transfer, too.
  const auto played = Replay(items, 2);
  EXPECT_NEAR(played[0].end, 5, kNear);
  EXPECT_NEAR(played[1].end, 5, kNear);
}

TEST(ReplayTest, NothingTakesNoTime) { EXPECT_TRUE(Replay({}, 3).empty()); }

}  // namespace
}  // namespace ft
