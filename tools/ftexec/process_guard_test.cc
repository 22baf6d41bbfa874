#include "tools/ftexec/process_guard.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <functional>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "runtime/base/exit_status.h"

namespace ft {
namespace {

// In a process of its own, whose main thread never gets done.
void FailAndHang(const absl::Status& reason) {
  const auto guard = *ProcessGuard::Start();
  guard->set_prefix("ftexec: rank 2: ");
  guard->Failed(reason, 1);
  guard->PeerLost(absl::UnavailableError("rank 5 was lost"));  // a consequence
  sleep(60);
}

TEST(ProcessGuardDeathTest, ARunThatFailedAndHangsIsEndedWithItsReason) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(FailAndHang(absl::UnavailableError("timed out in 'gather h.3' #17")),
              ::testing::ExitedWithCode(75), "^ftexec: rank 2: timed out in 'gather h.3' #17\n$");
  EXPECT_EXIT(FailAndHang(absl::InternalError("NCCL has lost its way")), ::testing::ExitedWithCode(74),
              "^ftexec: rank 2: NCCL has lost its way\n$");
  EXPECT_EXIT(FailAndHang(absl::InternalError("two\nlines\x1b[2J")), ::testing::ExitedWithCode(74),
              "^ftexec: rank 2: two\\\\nlines\\\\x1b\\[2J\n$");
}

// A launcher that is told of the failure stops the others, and does not wait long for them; why is said.
TEST(ProcessGuardDeathTest, ASignalIsNotKeptWaitingByAFailure) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const auto guard = *ProcessGuard::Start();
        guard->Failed(absl::UnavailableError("timed out"), 60);
        sleep(1);
        kill(getpid(), SIGTERM);
        sleep(60);
      },
      ::testing::KilledBySignal(SIGTERM), "^ftexec: timed out\n$");
}

TEST(ProcessGuardDeathTest, OneThatEndsInTimeIsLeftAlone) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        {
          const auto guard = *ProcessGuard::Start();
          guard->Failed(absl::UnavailableError("timed out"), 60);
        }
        _exit(3);
      },
      ::testing::ExitedWithCode(3), "^$");
}

// What is being written, such as a trace, may take longer than two seconds.
TEST(ProcessGuardDeathTest, WhatIsAllowedLongerIsLeftToEnd) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const auto guard = *ProcessGuard::Start();
        guard->OnCancel([](const absl::Status&) {});
        kill(getpid(), SIGTERM);
        guard->Allow(30);
        sleep(4);
        _exit(4);
      },
      ::testing::ExitedWithCode(4), "^$");
  EXPECT_EXIT(
      {
        const auto guard = *ProcessGuard::Start();
        guard->PeerLost(absl::UnavailableError("rank 5 was lost"));
        sleep(1);
        guard->Allow(3);
        sleep(60);
      },
      ::testing::ExitedWithCode(75), "^ftexec: rank 5 was lost\n$");
}

constexpr const char* kSaved = "saving\n$";

// Runs until it is done or cancelled: what a run with a checkpoint folder does. Ends with 143 when it has
// saved, `save_seconds` after the wish; with 9 when nobody told it anything.
void RunAndSave(const std::function<void()>& signals, double save_seconds = 0.3, double grace = 25) {
  const auto guard = *ProcessGuard::Start();
  guard->set_grace(absl::Seconds(grace));
  absl::Notification wished, cancelled;
  guard->OnCancel([&](const absl::Status&) { cancelled.Notify(); });
  guard->OnWish([&](Wish wish) {
    if (wish == Wish::kSaveAndEnd && !wished.HasBeenNotified()) {
      fprintf(stderr, "saving\n");
      wished.Notify();
    } else if (wish == Wish::kSave) {
      fprintf(stderr, "saving, going on\n");
    }
    return true;
  });
  signals();
  if (!wished.WaitForNotificationWithTimeout(absl::Seconds(1))) _exit(9);
  if (!cancelled.WaitForNotificationWithTimeout(absl::Seconds(save_seconds))) {
    guard->EndedAsWished();
    _exit(guard->ended_as_wished() && guard->signal() == 0 ? kExitEndedAsWished : 1);
  }
  sleep(60);
}

TEST(ProcessGuardDeathTest, AWishIsGrantedItsTime) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const int number : {SIGTERM, SIGUSR1}) {
    EXPECT_EXIT(RunAndSave([&] { kill(getpid(), number); }), ::testing::ExitedWithCode(143), kSaved);
    // Longer than a cancelled run may take, and up to the grace time.
    EXPECT_EXIT(RunAndSave([&] { kill(getpid(), number); }, 3.5), ::testing::ExitedWithCode(143), kSaved);
    EXPECT_EXIT(
        RunAndSave([&] { kill(getpid(), number); }, 60, 0.5), ::testing::KilledBySignal(number),
        "^saving\nftexec: no checkpoint within 500ms of the signal [0-9]+ \\(.*\\): ended without one, "
        "the one before stays; allow more with --grace\n$");
  }
}

TEST(ProcessGuardDeathTest, ASecondSigtermDoesNotWait) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto twice = [](int first, int second) {
    return [=] {
      kill(getpid(), first);
      absl::SleepFor(absl::Milliseconds(100));  // two at once would be one
      kill(getpid(), second);
    };
  };
  EXPECT_EXIT(RunAndSave(twice(SIGTERM, SIGTERM), 60), ::testing::KilledBySignal(SIGTERM), kSaved);
  EXPECT_EXIT(RunAndSave(twice(SIGTERM, SIGINT), 60), ::testing::KilledBySignal(SIGINT), kSaved);
  EXPECT_EXIT(RunAndSave(twice(SIGUSR1, SIGHUP), 60), ::testing::KilledBySignal(SIGHUP), kSaved);
  // These say the same again.
  EXPECT_EXIT(RunAndSave(twice(SIGUSR1, SIGTERM), 1), ::testing::ExitedWithCode(143), kSaved);
  EXPECT_EXIT(RunAndSave(twice(SIGTERM, SIGUSR1), 1), ::testing::ExitedWithCode(143), kSaved);
  EXPECT_EXIT(RunAndSave(twice(SIGUSR1, SIGUSR1), 1), ::testing::ExitedWithCode(143), kSaved);
}

TEST(ProcessGuardDeathTest, Sigusr2AsksForNoEnd) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(RunAndSave([] { kill(getpid(), SIGUSR2); }), ::testing::ExitedWithCode(9),
              "^saving, going on\n$");
}

TEST(ProcessGuardDeathTest, WhereNobodySavesSignalsAreAsBefore) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto run = [](int number, bool refuses, bool cancels) {
    const auto guard = *ProcessGuard::Start();
    if (refuses) guard->OnWish([](Wish) { return false; });
    if (cancels) guard->OnCancel([](const absl::Status&) {});
    kill(getpid(), number);
    sleep(number == SIGUSR2 ? 1 : 60);
    _exit(5);
  };
  for (const bool refuses : {false, true}) {
    for (const int number : {SIGTERM, SIGUSR1, SIGINT, SIGHUP}) {
      EXPECT_EXIT(run(number, refuses, refuses), ::testing::KilledBySignal(number), "^$") << number;
    }
    EXPECT_EXIT(
        run(SIGUSR2, refuses, refuses), ::testing::ExitedWithCode(5),
        "^ftexec: SIGUSR2 is ignored: it wishes for a checkpoint, and none can be written by this run "
        "now\n$");
  }
}

// torchrun sends SIGTERM when a rank was lost: nothing is saved then, not even when the wish was first.
TEST(ProcessGuardDeathTest, AfterALossNothingIsSaved) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto run = [](bool wish_first) {
    const auto guard = *ProcessGuard::Start();
    guard->OnCancel([](const absl::Status&) {});
    guard->OnWish([&](Wish) {
      if (!wish_first) _exit(1);
      return true;
    });
    if (wish_first) kill(getpid(), SIGTERM), sleep(1);
    guard->PeerLost(absl::UnavailableError("rank 5 was lost"));
    if (!wish_first) sleep(1), kill(getpid(), SIGUSR2), kill(getpid(), SIGTERM);
    sleep(60);
  };
  EXPECT_EXIT(run(true), ::testing::ExitedWithCode(75), "^ftexec: rank 5 was lost\n$");
  EXPECT_EXIT(run(false), ::testing::KilledBySignal(SIGTERM), "^ftexec: rank 5 was lost\n$");
}

// Signals are not taken away from a program that has no guard.
TEST(ProcessGuardDeathTest, WithoutDescriptorsOrThreadsThereIsAnError) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto limited = [](int resource, rlim_t most) {
    const rlimit limit = {.rlim_cur = most, .rlim_max = most};
    setrlimit(resource, &limit);
    const auto guard = ProcessGuard::Start();
    if (guard.ok() || ExitStatus(guard.status()) != kExitIo) _exit(1);
    raise(SIGTERM);
    _exit(2);
  };
  for (const rlim_t descriptors : {3, 4, 5})
    EXPECT_EXIT(limited(RLIMIT_NOFILE, descriptors), ::testing::KilledBySignal(SIGTERM), "^$") << descriptors;
  EXPECT_EXIT(limited(RLIMIT_AS, 1), ::testing::KilledBySignal(SIGTERM), "^$");
}

}  // namespace
}  // namespace ft
