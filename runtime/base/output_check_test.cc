#include "runtime/base/output_check.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "runtime/base/exit_status.h"
#include "runtime/base/testing/temp_folder.h"

namespace ft {
namespace {

using Check = absl::Status (*)(const std::string&, uint64_t);

class OutputCheckTest : public testing::TestWithParam<Check> {
 protected:
  void Refused(const std::string& path, const std::string& words, uint64_t bytes = 1) {
    const absl::Status status = GetParam()(path, bytes);
    EXPECT_EQ(ExitStatus(status), kExitIo) << path;
    EXPECT_NE(status.message().find("'" + path + "'"), absl::string_view::npos) << status;
    EXPECT_NE(status.message().find(words), absl::string_view::npos) << status;
  }

  TempFolder folder_;
};

TEST_P(OutputCheckTest, NothingStaysAndNothingIsLost) {
  EXPECT_TRUE(GetParam()(folder_.Path("new"), 1000).ok());
  EXPECT_EQ(folder_.NumFiles(), 0u);
  const std::string old = folder_.Write("old", "precious");
  EXPECT_TRUE(GetParam()(old, 1000).ok());
  EXPECT_EQ(TempFolder::Read(old), "precious");
  EXPECT_EQ(folder_.NumFiles(), 1u);
  std::filesystem::create_symlink(folder_.Path("target"), folder_.Path("link"));  // of nothing yet
  EXPECT_TRUE(GetParam()(folder_.Path("link"), 1000).ok());
  EXPECT_TRUE(std::filesystem::is_symlink(folder_.Path("link")));
  EXPECT_EQ(folder_.NumFiles(), 2u);
}

TEST_P(OutputCheckTest, WhatCannotBeWritten) {
  const std::string file = folder_.Write("file", "x");
  std::filesystem::create_directory(folder_.Path("folder"));
  Refused(folder_.Path("folder"), "Is a directory");
  Refused(folder_.Path("absent/file"), "No such file or directory");
  Refused(file + "/below", "Not a directory");
  Refused(folder_.Path(std::string(300, 'n')), "File name too long");
  std::filesystem::create_symlink("loop", folder_.Path("loop"));
  if (GetParam() == CheckInPlaceOutput) Refused(folder_.Path("loop"), "symbolic links");
  Refused("/dev/full", "full");
  Refused("/proc/ft_output", "No such file or directory");
  EXPECT_TRUE(GetParam()("/dev/null", 1 << 30).ok());
}

TEST_P(OutputCheckTest, PipesAreLeftAlone) {
  const std::string pipe = folder_.Path("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0666), 0);
  EXPECT_TRUE(GetParam()(pipe, 1 << 20).ok());  // returns, though nobody reads
}

TEST_P(OutputCheckTest, Room) {
  Refused(folder_.Path("a"), "bytes, and", uint64_t{1} << 62);
  EXPECT_EQ(folder_.NumFiles(), 0u);
  rlimit old, small;
  getrlimit(RLIMIT_FSIZE, &old);
  small = old;
  small.rlim_cur = 4096;
  setrlimit(RLIMIT_FSIZE, &small);
  Refused(folder_.Path("a"), "limited to 4096 (ulimit -f)", 4097);
  EXPECT_TRUE(GetParam()(folder_.Path("a"), 4096).ok());
  setrlimit(RLIMIT_FSIZE, &old);
  EXPECT_EQ(folder_.NumFiles(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Kinds, OutputCheckTest, testing::Values(CheckAtomicOutput, CheckInPlaceOutput));

}  // namespace
}  // namespace ft
