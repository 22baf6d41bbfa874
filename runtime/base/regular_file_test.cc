#include "runtime/base/regular_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "absl/strings/str_cat.h"
#include "runtime/base/exit_status.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/testing/temp_folder.h"

namespace ft {
namespace {

TEST(RegularFileTest, ReadsAllOfAText) {
  TempFolder folder;
  for (size_t size : {0, 1, 65535, 65536, 65537, 300000}) {
    const std::string text(size, 'x');
    const absl::StatusOr<std::string> read = ReadText(folder.Write("text", text), "configuration", 300000);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, text);
  }
}

TEST(RegularFileTest, ReadsNoMoreThanTheBound) {
  TempFolder folder;
  const absl::Status status =
      ReadText(folder.Write("text", std::string(1025, 'x')), "configuration", 1024).status();
  EXPECT_EQ(ExitStatus(status), kExitBadInput);
  EXPECT_EQ(status.message(), folder.Path("text") + ": larger than 1024 bytes; this is no configuration");
}

// None of them is waited for or read.
TEST(RegularFileTest, RefusesDevicesAndPipes) {
  TempFolder folder;
  ASSERT_EQ(mkfifo(folder.Path("pipe").c_str(), 0600), 0);
  for (const std::string& path : {std::string("/dev/zero"), std::string("/dev/null"), folder.Path("pipe")}) {
    const absl::Status text = ReadText(path, "model", 1024).status();
    EXPECT_EQ(ExitStatus(text), kExitBadInput) << path << text;
    EXPECT_EQ(text.message(), absl::StrCat("'", path, "' is not a regular file"));
    EXPECT_EQ(MappedFile::Open(path, MappedFile::Access::kNormal).status().message(), text.message());
  }
}

TEST(RegularFileTest, RefusesDirectories) {
  const absl::Status folder = ReadText("/", "configuration", 1024).status();
  EXPECT_EQ(ExitStatus(folder), kExitBadInput);
  EXPECT_EQ(folder.message(), "'/' is a directory, not a regular file");
}

TEST(RegularFileTest, WhatIsNotThereIsAnErrorOfTheSystem) {
  const absl::Status status = ReadText("/no/such/file", "configuration", 1024).status();
  EXPECT_EQ(ExitStatus(status), kExitIo);
  EXPECT_EQ(status.message(), "cannot read configuration '/no/such/file': No such file or directory");
}

// As `<(command)` of a shell and /dev/stdin name them.
TEST(RegularFileTest, ReadsPipesThatTheProcessWasGiven) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const std::string text(200000, 'y');
  std::thread writer([&] {
    EXPECT_EQ(write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
    close(ends[1]);
  });
  const absl::StatusOr<std::string> read = ReadText(absl::StrCat("/dev/fd/", ends[0]), "model", 1 << 20);
  writer.join();
  close(ends[0]);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, text);
  EXPECT_EQ(ExitStatus(ReadText("/dev/fd/9999", "model", 1024).status()), kExitIo);
}

}  // namespace
}  // namespace ft
