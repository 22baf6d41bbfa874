#include "runtime/collective/liveness/agreement.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/barrier.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "runtime/collective/liveness/peer_monitor.h"
#include "runtime/collective/liveness/testing/watched_rank.h"
#include "runtime/collective/testing/test_world.h"

namespace ft {
namespace {

using testing::ForkedRank;
using testing::StartWatchedRank;
using testing::TestWorld;
using testing::WriteLine;
using Payloads = std::vector<std::string>;

constexpr absl::Duration kLong = absl::Seconds(60);

std::string Joined(const Payloads& payloads) {
  std::string all;
  for (const std::string& payload : payloads) absl::StrAppend(&all, payload, "|");
  return all;
}

absl::StatusOr<std::string> NotCalled(const Payloads&) {
  ADD_FAILURE() << "no rank but 0 decides";
  return "";
}

TEST(AgreementTest, AllRanksGetWhatRank0Decides) {
  TestWorld(5).RunThreads([](const Rendezvous& rendezvous) {
    auto monitor = PeerMonitor::Start(rendezvous).value();
    const int rank = rendezvous.rank();
    for (uint64_t number = 1; number <= 20; ++number) {
      // Some come late, others early.
      if ((static_cast<int>(number) + rank) % 5 == 0) absl::SleepFor(absl::Milliseconds(3));
      const std::string payload = absl::StrCat("rank ", rank, " in ", number);
      const auto result = rank == 0 ? monitor->Agree("save", number, payload, Joined, kLong)
                                    : monitor->Agree("save", number, payload, NotCalled, kLong);
      std::string expected;
      for (int r = 0; r < 5; ++r) absl::StrAppend(&expected, "rank ", r, " in ", number, "|");
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_EQ(*result, expected);
    }
    const Agreement::Counts counts = monitor->agreement_counts();
    EXPECT_EQ(counts.messages_in, rank == 0 ? 20 * 4 : 0);
    EXPECT_EQ(counts.messages_out, rank == 0 ? 20 * 4 : 0);
    EXPECT_EQ(counts.agreements, rank == 0 ? 20 : 0);
    EXPECT_TRUE(monitor->Goodbye().ok());
  });
}

TEST(AgreementTest, OneRankAgreesWithItself) {
  auto rendezvous = Rendezvous::Join(LaunchEnvironment{}, {}).value();
  auto monitor = PeerMonitor::Start(*rendezvous).value();
  EXPECT_EQ(monitor->Agree("save", 1, "mine", Joined, kLong).value(), "mine|");
  const auto fails = [](const Payloads&) { return absl::StatusOr<std::string>(absl::DataLossError("bad")); };
  EXPECT_EQ(monitor->Agree("save", 2, "mine", fails, kLong).status(), absl::DataLossError("bad"));
  EXPECT_EQ(monitor->agreement_counts().messages_in, 0);
}

// Tens of megabytes, of different sizes, arrive whole; beside them the watch goes on.
TEST(AgreementTest, LongTextsArriveWhole) {
  const auto text_of = [](int rank) {
    std::string text(static_cast<size_t>(rank == 2 ? 0 : 17'000'000 + 1'000'003 * rank), '\0');
    for (size_t i = 0; i < text.size(); ++i)
      text[i] = static_cast<char>((i * 2654435761u >> 13) + static_cast<size_t>(rank));
    return text;
  };
  TestWorld(4).RunThreads([&](const Rendezvous& rendezvous) {
    auto monitor = PeerMonitor::Start(rendezvous).value();
    const auto decide = [&](const Payloads& payloads) {
      for (int rank = 0; rank < 4; ++rank)
        EXPECT_TRUE(payloads[static_cast<size_t>(rank)] == text_of(rank)) << rank;
      return payloads[3] + payloads[1];
    };
    const auto result = monitor->Agree("bytes", 7, text_of(rendezvous.rank()), decide, kLong);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_TRUE(*result == text_of(3) + text_of(1));
    EXPECT_TRUE(monitor->Goodbye().ok());
  });
}

// As a writer of checkpoints does it: while the thread that trains uses the same connections.
TEST(AgreementTest, ManyAgreeBesideWishesAndStepTimes) {
  TestWorld(4).RunThreads([&](const Rendezvous& rendezvous) {
    auto monitor = PeerMonitor::Start(rendezvous).value();
    const int rank = rendezvous.rank();
    std::atomic<bool> written = false;
    std::thread writer([&] {
      for (uint64_t number = 0; number < 60; ++number) {
        const std::string payload(number % 3 * 150'000 + static_cast<size_t>(rank), 'a' + rank);
        const auto decide = [&](const Payloads& payloads) { return payloads[3] + payloads[2]; };
        const auto result = monitor->Agree("save", number, payload, decide, kLong);
        ASSERT_TRUE(result.ok()) << result.status();
        const size_t base = number % 3 * 150'000;
        EXPECT_TRUE(*result == std::string(base + 3, 'd') + std::string(base + 2, 'c'));
      }
      written = true;
    });
    // Not in lockstep: what becomes of the orders does not matter here.
    for (int64_t step = 1; !written || step < 200; ++step) {
      monitor->step_times().Report(step, 10 + rank);
      if (rank == 1 && step % 20 == 0) monitor->wishes().Request(Wish::kSave);
      EXPECT_TRUE(monitor->wishes().AtBoundary(step).ok());
      absl::SleepFor(absl::Microseconds(200));
    }
    writer.join();
    EXPECT_TRUE(monitor->Goodbye().ok());
  });
}

TEST(AgreementTest, AnErrorOfTheDecisionIsEverybodys) {
  TestWorld(3).RunThreads([](const Rendezvous& rendezvous) {
    auto monitor = PeerMonitor::Start(rendezvous).value();
    const auto full = [](const Payloads&) {
      return absl::StatusOr<std::string>(absl::ResourceExhaustedError("the disk is full"));
    };
    const absl::Status status = monitor->Agree("save", 1, "", full, kLong).status();
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    EXPECT_EQ(status.message(), "the disk is full");
    EXPECT_TRUE(IsKnownToAll(status));
    EXPECT_EQ(monitor->Agree("save", 2, "x", Joined, kLong).value(), "x|x|x|") << "the next one is as good";
    monitor->Goodbye().IgnoreError();
  });
}

TEST(AgreementTest, DifferentSubjectsAreNamed) {
  TestWorld(3).RunThreads([](const Rendezvous& rendezvous) {
    auto monitor = PeerMonitor::Start(rendezvous).value();
    const bool odd = rendezvous.rank() == 2;
    const auto topic = monitor->Agree(odd ? "load" : "save", 4, "", Joined, kLong).status();
    EXPECT_EQ(topic, absl::InternalError("rank 2 wants to agree on 'load' 4 and rank 0 on 'save' 4"));
    const auto number = monitor->Agree("save", odd ? 5 : 6, "", Joined, kLong).status();
    EXPECT_EQ(number, absl::InternalError("rank 2 wants to agree on 'save' 5 and rank 0 on 'save' 6"));
    monitor->Goodbye().IgnoreError();
  });
}

TEST(AgreementTest, WhoIsMissingIsNamedAndTheNextOneWorks) {
  TestWorld world(4);
  absl::Barrier* barrier = new absl::Barrier(4);
  world.RunThreads([&](const Rendezvous& rendezvous) {
    auto monitor = PeerMonitor::Start(rendezvous).value();
    const int rank = rendezvous.rank();
    const bool late = rank == 1 || rank == 3;
    if (late) absl::SleepFor(absl::Milliseconds(700));
    const absl::Status status =
        monitor->Agree("save", 1, "late", Joined, late ? kLong : absl::Milliseconds(200)).status();
    EXPECT_EQ(status,
              absl::DeadlineExceededError("ranks 1, 3 did not come to agree on 'save' 1 within 200ms"))
        << rank;
    EXPECT_EQ(monitor->Agree("save", 2, "y", Joined, kLong).value(), "y|y|y|y|");
    if (barrier->Block()) delete barrier;
    monitor->Goodbye().IgnoreError();
  });
}

TEST(AgreementTest, ALateRank0IsNotWaitedForWithoutEnd) {
  TestWorld(2).RunThreads([](const Rendezvous& rendezvous) {
    auto monitor = PeerMonitor::Start(rendezvous).value();
    if (rendezvous.rank() == 1) {
      const absl::Status status = monitor->Agree("save", 1, "", NotCalled, -absl::Seconds(4.9)).status();
      EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
      EXPECT_NE(status.message().find("rank 0 did not say what was agreed on 'save' 1"), std::string::npos);
    } else {
      absl::SleepFor(absl::Milliseconds(600));
      monitor->Agree("save", 1, "", Joined, absl::Milliseconds(300)).IgnoreError();
    }
    EXPECT_EQ(monitor->Agree("save", 2, "z", Joined, kLong).value(), "z|z|");
    monitor->Goodbye().IgnoreError();
  });
}

TEST(AgreementTest, ATextThatIsTooLongIsRefusedEverywhere) {
  TestWorld(3).RunThreads([](const Rendezvous& rendezvous) {
    auto monitor = PeerMonitor::Start(rendezvous).value();
    std::string payload = "short";
    if (rendezvous.rank() == 1) payload.resize(Agreement::kMaxBytes + 1);
    const absl::Status status = monitor->Agree("save", 1, std::move(payload), Joined, kLong).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_NE(status.message().find("rank 1: a text to agree on has 268435457 bytes"), std::string::npos)
        << status;
    monitor->Goodbye().IgnoreError();
  });
}

TEST(AgreementTest, ARankThatFailsOrEndsEndsTheWaiting) {
  for (const bool fails : {true, false}) {
    for (const int leaving : {0, 2}) {
      if (leaving == 0 && !fails) continue;  // rank 0 says goodbye last
      TestWorld(3).RunThreads([&](const Rendezvous& rendezvous) {
        auto monitor = PeerMonitor::Start(rendezvous).value();
        if (rendezvous.rank() == leaving) {
          absl::SleepFor(absl::Milliseconds(100));
          if (fails) monitor->Fail("no reason");
          if (!fails) monitor->Goodbye().IgnoreError();
          return;
        }
        const absl::Status status = monitor->Agree("save", 1, "", Joined, kLong).status();
        EXPECT_EQ(status,
                  absl::UnavailableError(fails ? absl::StrCat("rank ", leaving, " failed: no reason")
                                               : "rank 2 ended and did not come to agree on 'save' 1"));
        monitor->Goodbye().IgnoreError();
      });
    }
  }
}

TEST(AgreementTest, CancelEndsTheWaiting) {
  absl::Barrier* cancelled = new absl::Barrier(2);  // else the first goodbye may end the other's waiting
  TestWorld(2).RunThreads([&](const Rendezvous& rendezvous) {
    auto monitor = PeerMonitor::Start(rendezvous).value();
    std::thread writer([&] {
      // Rank 1 never comes, or rank 0 does not.
      if (rendezvous.rank() == 0) {
        EXPECT_EQ(monitor->Agree("save", 1, "", Joined, kLong).status(), absl::CancelledError("enough"));
      }
    });
    absl::SleepFor(absl::Milliseconds(50));
    monitor->Cancel(absl::CancelledError("enough"));
    writer.join();
    if (cancelled->Block()) delete cancelled;
    EXPECT_EQ(monitor->Agree("save", 2, "", Joined, kLong).status(), absl::CancelledError("enough"));
    monitor->Goodbye().IgnoreError();
  });
}

TEST(AgreementTest, TwoAtOnceAreRefused) {
  TestWorld(2).RunThreads([](const Rendezvous& rendezvous) {
    auto monitor = PeerMonitor::Start(rendezvous).value();
    absl::Notification go;
    std::thread writer([&] {
      const auto decide = [&](const Payloads&) {
        go.Notify();
        absl::SleepFor(absl::Milliseconds(100));
        return std::string("once");
      };
      EXPECT_EQ(monitor->Agree("save", 1, "", decide, kLong).value(), "once");
    });
    if (rendezvous.rank() == 0) {
      go.WaitForNotification();
      EXPECT_TRUE(absl::IsInternal(monitor->Agree("save", 2, "", Joined, kLong).status()));
    }
    writer.join();
    monitor->Goodbye().IgnoreError();
  });
}

// In processes of their own: one is killed while megabytes are under way, and another one stopped for a
// while.
TEST(AgreementTest, AKilledRankIsNamedAndAStoppedOneWaitedFor) {
  for (const bool is_killed : {true, false}) {
    TestWorld world(3);
    std::vector<ForkedRank> ranks;
    for (int rank = 0; rank < 3; ++rank) {
      ranks.push_back(StartWatchedRank(world, rank, [](PeerMonitor& monitor, int out) {
        for (uint64_t number = 0;; ++number) {
          const auto sizes = [](const Payloads& payloads) {
            return absl::StrCat(payloads[0].size() + payloads[1].size() + payloads[2].size());
          };
          const auto result = monitor.Agree("save", number, std::string(1 << 20, 'x'), sizes, kLong);
          if (result.ok() && *result == "3145728" && number < 300) continue;
          WriteLine(out, result.ok() ? *result : std::string(result.status().message()));
          monitor.Goodbye().IgnoreError();
          return 0;
        }
      }));
    }
    for (const ForkedRank& rank : ranks) EXPECT_EQ(rank.ReadLine(), "ready");
    absl::SleepFor(absl::Milliseconds(50));
    kill(ranks[1].pid(), is_killed ? SIGKILL : SIGSTOP);
    absl::SleepFor(absl::Milliseconds(300));
    kill(ranks[1].pid(), SIGCONT);
    for (const int rank : {0, 2}) {
      const std::string said = ranks[static_cast<size_t>(rank)].ReadLine();
      EXPECT_EQ(said.find(is_killed ? "rank 1 was lost" : "3145728"), 0u) << said;
    }
  }
}

}  // namespace
}  // namespace ft
