#include "runtime/base/standard_streams.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/base/testing/temp_folder.h"

namespace ft {
namespace {

// 0 when what is printed after closing standard output does not reach the next file that is opened.
int PrintWithoutStandardOutput(const std::string& path) {
  close(STDOUT_FILENO);
  HoldStandardDescriptors();
  const int file = open(path.c_str(), O_CREAT | O_WRONLY, 0600);
  if (file <= STDERR_FILENO) return 1;
  if (PrintOut("lost").ok()) return 2;
  return write(STDOUT_FILENO, "x", 1) == -1 && errno == EBADF ? 0 : 3;
}

TEST(StandardStreamsTest, AClosedStreamIsNotHandedToTheNextFile) {
  TempFolder folder;
  const pid_t child = fork();
  if (child == 0) _exit(PrintWithoutStandardOutput(folder.Path("next")));
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
  EXPECT_EQ(TempFolder::Read(folder.Path("next")), "");
}

// The one place where lines of errors are printed.
TEST(StandardStreamsTest, AnErrorIsOneLineOfBoundedText) {
  testing::internal::CaptureStderr();
  PrintError("ftc: '\x1b[2J\xff\n" + std::string(1 << 20, 'A') + "'");
  const std::string printed = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(printed.starts_with("ftc: '\\x1b[2J\\xff\\nAAA")) << printed.substr(0, 50);
  EXPECT_TRUE(printed.ends_with("A'\n"));
  EXPECT_EQ(printed.find('\n'), printed.size() - 1);
  EXPECT_LE(printed.size(), 4097u);
}

TEST(StandardStreamsTest, OutputHasNothingThatATerminalObeys) {
  testing::internal::CaptureStdout();
  ASSERT_TRUE(PrintOut("unit \x1b[31m\n\tx\n").ok());
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "unit \\x1b[31m\n\tx\n");
}

}  // namespace
}  // namespace ft
