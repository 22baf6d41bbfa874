#include "runtime/base/standard_streams.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/base/temp_folder.h"

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

TEST(StandardStreamsTest, OneLineEscapesWhatWouldLeaveTheLine) {
  EXPECT_EQ(OneLine("tensor 'a\nb\x1b[31m\t\x7f' \xc3\xa9"), "tensor 'a\\nb\\x1b[31m\\x09\\x7f' \xc3\xa9");
}

}  // namespace
}  // namespace ft
