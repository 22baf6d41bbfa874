#include "runtime/collective/liveness/peer_monitor.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "runtime/collective/testing/test_world.h"

namespace ft {
namespace {

using testing::ForkedRank;
using testing::TestWorld;
using testing::WriteLine;

TEST(PeerMonitorTest, GoodbyesAreNoLoss) {
  TestWorld(4).RunThreads([](const Rendezvous& rendezvous) {
    auto monitor = PeerMonitor::Start(rendezvous).value();
    bool lost = false;
    monitor->OnLoss([&](const absl::Status&) { lost = true; });
    // Rank 0 says goodbye first and has to wait for the others.
    if (rendezvous.rank() > 0) absl::SleepFor(absl::Milliseconds(20 * rendezvous.rank()));
    EXPECT_TRUE(monitor->Goodbye().ok());
    EXPECT_FALSE(lost);
  });
}

TEST(PeerMonitorTest, OneRankHasNobodyToLose) {
  auto rendezvous = Rendezvous::Join(LaunchEnvironment{}, {}).value();
  auto monitor = PeerMonitor::Start(*rendezvous).value();
  monitor->Fail("alone");
  EXPECT_TRUE(monitor->status().ok());
  EXPECT_TRUE(monitor->Goodbye().ok());
}

TEST(PeerMonitorTest, AFailureIsToldWithItsMessage) {
  for (const int failing : {0, 2}) {
    TestWorld(4).RunThreads([&](const Rendezvous& rendezvous) {
      auto monitor = PeerMonitor::Start(rendezvous).value();
      if (rendezvous.rank() == failing) {
        monitor->Fail("the data file is too short");
        return;
      }
      absl::Notification told;
      monitor->OnLoss([&](const absl::Status&) { told.Notify(); });
      ASSERT_TRUE(told.WaitForNotificationWithTimeout(absl::Seconds(5)));
      const std::string expected = "rank " + std::to_string(failing) + " failed: the data file is too short";
      EXPECT_EQ(monitor->status().message(), expected);
      EXPECT_EQ(monitor->Explain(absl::UnavailableError("a connection broke")).message(), expected);
      monitor->Fail("a consequence");  // must not become anybody's reason
    });
  }
}

TEST(PeerMonitorTest, ExplainWaitsForTheVerdict) {
  TestWorld(2).RunThreads([&](const Rendezvous& rendezvous) {
    auto monitor = PeerMonitor::Start(rendezvous).value();
    if (rendezvous.rank() == 1) {
      absl::SleepFor(absl::Milliseconds(100));
      monitor->Fail("late");
      return;
    }
    EXPECT_EQ(monitor->Explain(absl::InternalError("mine")).message(), "mine");
    EXPECT_EQ(monitor->Explain(absl::UnavailableError("mine")).message(), "rank 1 failed: late");
  });
}

// Starts `size` processes with a monitor each; they report the verdict when they hear one.
std::vector<ForkedRank> StartWatching(const TestWorld& world, int size) {
  std::vector<ForkedRank> ranks;
  for (int rank = 0; rank < size; ++rank) {
    ranks.emplace_back([&world, rank](int out) {
      auto rendezvous = Rendezvous::Join(world.EnvironmentOf(rank), TestWorld::Options()).value();
      auto monitor = PeerMonitor::Start(*rendezvous).value();
      WriteLine(out, "ready");
      absl::Notification lost;
      monitor->OnLoss([&](const absl::Status&) { lost.Notify(); });
      lost.WaitForNotificationWithTimeout(absl::Seconds(10));
      WriteLine(out, std::string(monitor->status().message()));
      return 0;
    });
  }
  for (const ForkedRank& rank : ranks) EXPECT_EQ(rank.ReadLine(), "ready");
  return ranks;
}

TEST(PeerMonitorTest, AKilledRankIsNamedByAllOthers) {
  for (const int victim : {0, 2}) {
    TestWorld world(4);
    auto ranks = StartWatching(world, 4);
    const pid_t pid = ranks[static_cast<size_t>(victim)].pid();
    const absl::Time killed = absl::Now();
    kill(pid, SIGKILL);
    for (int rank = 0; rank < 4; ++rank) {
      if (rank == victim) continue;
      const std::string said = ranks[static_cast<size_t>(rank)].ReadLine();
      EXPECT_EQ(said.find("rank " + std::to_string(victim) + " was lost"), 0u) << said;
      EXPECT_NE(said.find("pid " + std::to_string(pid)), std::string::npos) << said;
    }
    EXPECT_LT(absl::Now() - killed, absl::Seconds(2));
  }
}

TEST(PeerMonitorTest, AStoppedRankIsNotLost) {
  TestWorld world(3);
  auto ranks = StartWatching(world, 3);
  kill(ranks[1].pid(), SIGSTOP);
  absl::SleepFor(absl::Milliseconds(300));
  kill(ranks[1].pid(), SIGCONT);
  kill(ranks[2].pid(), SIGKILL);
  EXPECT_EQ(ranks[0].ReadLine().find("rank 2 was lost"), 0u);
  EXPECT_EQ(ranks[1].ReadLine().find("rank 2 was lost"), 0u);
}

}  // namespace
}  // namespace ft
