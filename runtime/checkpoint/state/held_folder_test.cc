#include "runtime/checkpoint/state/held_folder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>
#include <string>

#include "runtime/base/testing/temp_folder.h"

namespace ft {
namespace {

TEST(HeldFolderTest, OneRunAtATimeAndNothingStays) {
  const TempFolder temp;
  std::optional<HeldFolder> first(HeldFolder::Take(temp.Path("")).value());
  const absl::Status second = HeldFolder::Take(temp.Path("")).status();
  EXPECT_EQ(second.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(second.message().find("another run (process " + std::to_string(getpid()) + " on "),
            std::string::npos)
      << second;
  EXPECT_EQ(temp.NumFiles(), 1u);
  first.reset();
  EXPECT_EQ(temp.NumFiles(), 0u);
  EXPECT_TRUE(HeldFolder::Take(temp.Path("")).ok());
}

TEST(HeldFolderTest, AProcessThatWasKilledHoldsNothing) {
  const TempFolder temp;
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const absl::StatusOr<HeldFolder> held = HeldFolder::Take(temp.Path(""));
    const char byte = held.ok() ? 1 : 0;
    if (write(ready[1], &byte, 1) == 1) pause();
    _exit(0);
  }
  char taken = 0;
  ASSERT_EQ(read(ready[0], &taken, 1), 1);
  EXPECT_EQ(taken, 1);
  const absl::Status refused = HeldFolder::Take(temp.Path("")).status();
  EXPECT_NE(refused.message().find("(process " + std::to_string(child) + " on "), std::string::npos)
      << refused;
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(temp.NumFiles(), 1u);  // what it left blocks nobody
  EXPECT_TRUE(HeldFolder::Take(temp.Path("")).ok());
  EXPECT_EQ(temp.NumFiles(), 0u);
}

TEST(HeldFolderTest, AFolderThatCannotBeWrittenIsAnError) {
  const TempFolder temp;
  EXPECT_EQ(HeldFolder::Take(temp.Path("absent")).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace ft
