#include "tools/ftexec/process_guard.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

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

// A launcher that is told of the failure stops the others, and does not wait long for them.
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
      ::testing::KilledBySignal(SIGTERM), "^$");
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
