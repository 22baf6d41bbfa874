#include "runtime/base/thread.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>

#include "runtime/base/exit_status.h"

namespace ft {
namespace {

TEST(ThreadTest, Runs) {
  std::atomic<bool> ran = false;
  absl::StatusOr<std::thread> thread = StartThread("for a test", [&] { ran = true; });
  ASSERT_TRUE(thread.ok()) << thread.status();
  thread->join();
  EXPECT_TRUE(ran);
  EXPECT_TRUE(ProbeThreads("for a test", 8).ok());
  EXPECT_TRUE(ProbeThreads("for a test", 0).ok());
  EXPECT_TRUE(ProbeProcesses("for a test", 8).ok());
}

// In a process of its own: a limit on memory that leaves no room for another thread's stack.
int WithoutMemory() {
  const rlimit limit = {.rlim_cur = 1, .rlim_max = 1};
  if (setrlimit(RLIMIT_AS, &limit) != 0) return 1;
  const absl::Status status = ProbeThreads("to compute", 3);
  if (ExitStatus(status) != kExitIo) return 2;
  const bool said = status.message().find("cannot start a thread to compute: ") == 0 &&
                    status.message().find("ulimit -u") != absl::string_view::npos;
  return said ? 0 : 3;
}

TEST(ThreadDeathTest, NoneToBeHad) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(_exit(WithoutMemory()), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace ft
