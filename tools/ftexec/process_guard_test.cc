#include "tools/ftexec/process_guard.h"

#include <signal.h>
#include <unistd.h>

#include "gtest/gtest.h"

namespace ft {
namespace {

// In a process of its own, whose main thread never gets done.
void FailAndHang(const absl::Status& reason) {
  ProcessGuard guard;
  guard.set_prefix("ftexec: rank 2: ");
  guard.Failed(reason, 1);
  guard.PeerLost(absl::UnavailableError("rank 5 was lost"));  // a consequence
  sleep(60);
}

TEST(ProcessGuardDeathTest, ARunThatFailedAndHangsIsEndedWithItsReason) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(FailAndHang(absl::UnavailableError("timed out in 'gather h.3' #17")),
              ::testing::ExitedWithCode(75), "^ftexec: rank 2: timed out in 'gather h.3' #17\n$");
  EXPECT_EXIT(FailAndHang(absl::InternalError("NCCL has lost its way")), ::testing::ExitedWithCode(74),
              "^ftexec: rank 2: NCCL has lost its way\n$");
}

// A launcher that is told of the failure stops the others, and does not wait long for them.
TEST(ProcessGuardDeathTest, ASignalIsNotKeptWaitingByAFailure) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        ProcessGuard guard;
        guard.Failed(absl::UnavailableError("timed out"), 60);
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
          ProcessGuard guard;
          guard.Failed(absl::UnavailableError("timed out"), 60);
        }
        _exit(3);
      },
      ::testing::ExitedWithCode(3), "^$");
}

}  // namespace
}  // namespace ft
