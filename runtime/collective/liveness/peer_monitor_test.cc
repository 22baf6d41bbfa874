#include "runtime/collective/liveness/peer_monitor.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "runtime/collective/liveness/testing/watched_rank.h"
#include "runtime/collective/missing_ranks.h"
#include "runtime/collective/testing/test_world.h"

namespace ft {
namespace {

using testing::ForkedRank;
using testing::StartWatchedRank;
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

absl::Status WaitedFor(int rank) {
  const std::string name = "rank " + std::to_string(rank);
  absl::Status status = absl::UnavailableError("timed out waiting for " + name);
  SetMissingRanks({name}, status);
  return status;
}

// Rank 2 does not come. Rank 3 has got what it needed of it, waits for rank 0, and is the first to say so;
// the connection of rank 1 broke when another's time was over.
TEST(PeerMonitorTest, AllThatAreHeldUpNameTheRankThatIsMissing) {
  for (const int sees : {0, 1}) {  // that rank 2 is missing
    absl::Notification first;
    TestWorld(4).RunThreads([&](const Rendezvous& rendezvous) {
      const int rank = rendezvous.rank();
      absl::Notification told;
      auto monitor = PeerMonitor::Start(rendezvous).value();
      if (rank == 2) {
        monitor->OnLoss([&](const absl::Status&) { told.Notify(); });
        ASSERT_TRUE(told.WaitForNotificationWithTimeout(absl::Seconds(10)));
        EXPECT_EQ(monitor->status().message(),
                  "rank " + std::to_string(sees) + " failed: timed out waiting for rank 2");
        return;
      }
      monitor->OnLoss([&](const absl::Status&) { EXPECT_NE(rank, sees); });
      rank == 3 ? first.Notify() : first.WaitForNotification();
      const absl::Status error = rank == 3      ? WaitedFor(0)
                                 : rank == sees ? WaitedFor(2)
                                                : absl::UnavailableError("the connection to rank 3 broke");
      const absl::Status explained = monitor->Explain(error);
      const std::string blamed = rank == sees ? "" : "rank " + std::to_string(sees) + " failed: ";
      EXPECT_EQ(explained.message(), blamed + "timed out waiting for rank 2");
      EXPECT_EQ(MissingRanks(explained), rank == sees ? std::vector<int>{2} : std::vector<int>{});
      EXPECT_EQ(monitor->status().ok(), rank == sees);
      monitor->Fail(std::string(explained.message()));  // says nothing new
      EXPECT_EQ(monitor->Explain(error).message(), explained.message());
    });
  }
}

// Who does not complain in time is the one to look for, of several.
TEST(PeerMonitorTest, RanksThatAreWellLearnOfAComplaint) {
  TestWorld(4).RunThreads([&](const Rendezvous& rendezvous) {
    auto monitor = PeerMonitor::Start(rendezvous).value();
    if (rendezvous.rank() == 1) {
      EXPECT_EQ(monitor->Explain(WaitedFor(3)), WaitedFor(3));
      return;
    }
    absl::Notification told;
    monitor->OnLoss([&](const absl::Status&) { told.Notify(); });
    ASSERT_TRUE(told.WaitForNotificationWithTimeout(absl::Seconds(10)));
    EXPECT_EQ(monitor->status().message(), "rank 1 failed: timed out waiting for rank 3");
  });
}

// A failure of another kind is nobody's consequence.
TEST(PeerMonitorTest, AFailureIsToldBeforeComplaints) {
  TestWorld(4).RunThreads([&](const Rendezvous& rendezvous) {
    auto monitor = PeerMonitor::Start(rendezvous).value();
    const int rank = rendezvous.rank();
    if (rank == 2) return monitor->Fail("the disk is full");
    EXPECT_EQ(monitor->Explain(rank == 1 ? absl::UnavailableError("broke") : WaitedFor(1)).message(),
              "rank 2 failed: the disk is full");
  });
}

TEST(PeerMonitorTest, ARank0ThatDoesNotAnswerIsNamed) {
  TestWorld world(3);
  const ForkedRank leader = StartWatchedRank(world, 0);
  world.EachRank([&](int rank) {
    if (rank == 0) return;
    auto rendezvous = Rendezvous::Join(world.EnvironmentOf(rank), TestWorld::Options()).value();
    auto monitor = PeerMonitor::Start(*rendezvous).value();
    if (rank == 1) {
      EXPECT_EQ(leader.ReadLine(), "ready");
      leader.Stop();
    }
    const std::string answer = "; rank 0 (pid " + std::to_string(leader.pid());
    const absl::Status error = monitor->Explain(WaitedFor(rank == 1 ? 2 : 0), absl::Seconds(1));
    if (rank == 1) {
      EXPECT_EQ(std::string(error.message()).find("timed out waiting for rank 2" + answer), 0u) << error;
      EXPECT_EQ(MissingRanks(error), std::vector<int>{2});
    } else {
      EXPECT_EQ(error, WaitedFor(0));
    }
  });
}

// Starts `size` processes with a monitor each; they report the verdict when they hear one.
std::vector<ForkedRank> StartWatching(const TestWorld& world, int size) {
  std::vector<ForkedRank> ranks;
  for (int rank = 0; rank < size; ++rank) {
    ranks.push_back(StartWatchedRank(world, rank, [](PeerMonitor& monitor, int out) {
      absl::Notification lost;
      monitor.OnLoss([&](const absl::Status&) { lost.Notify(); });
      lost.WaitForNotificationWithTimeout(absl::Seconds(10));
      WriteLine(out, std::string(monitor.status().message()));
      return 0;
    }));
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
