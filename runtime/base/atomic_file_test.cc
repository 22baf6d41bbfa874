#include "runtime/base/atomic_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "runtime/base/mapped_file.h"
#include "runtime/base/testing/temp_folder.h"

namespace ft {
namespace {

class AtomicFileTest : public testing::Test {
 protected:
  std::string Path(const std::string& name) const { return folder_.Path(name); }

  TempFolder folder_;
};

TEST_F(AtomicFileTest, CommitReplacesTheOldFile) {
  ASSERT_TRUE(WriteFileAtomically(Path("a"), "old").ok());
  ASSERT_TRUE(WriteFileAtomically(Path("a"), "new").ok());
  EXPECT_EQ(TempFolder::Read(Path("a")), "new");
  EXPECT_EQ(folder_.NumFiles(), 1u);
  struct stat info;
  ASSERT_EQ(stat(Path("a").c_str(), &info), 0);
  const mode_t mask = umask(0);
  umask(mask);
  EXPECT_EQ(info.st_mode & 0777, 0666 & ~mask);
}

TEST_F(AtomicFileTest, WithoutCommitNothingHappens) {
  ASSERT_TRUE(WriteFileAtomically(Path("a"), "old").ok());
  {
    auto file = AtomicFile::Create(Path("a"));
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE((*file)->Append(std::string(1 << 20, 'x')).ok());
    EXPECT_EQ(folder_.NumFiles(), 2u);
  }
  EXPECT_EQ(TempFolder::Read(Path("a")), "old");
  EXPECT_EQ(folder_.NumFiles(), 1u);
}

TEST_F(AtomicFileTest, PiecesOfAllSizesArriveInOrder) {
  std::string expected;
  auto file = AtomicFile::Create(Path("a"));
  ASSERT_TRUE(file.ok());
  for (size_t bytes : {1, 70'000, 3, 65'535, 2, 65'536, 10, 0, 65'530, 200'000, 1}) {
    const std::string piece(bytes, static_cast<char>('a' + expected.size() % 26));
    ASSERT_TRUE((*file)->Append(piece).ok());
    expected += piece;
  }
  ASSERT_TRUE((*file)->Commit().ok());
  EXPECT_EQ(TempFolder::Read(Path("a")), expected);
}

TEST_F(AtomicFileTest, WritesIntoAPipeAndLeavesItInPlace) {
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  const int reader = open(Path("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  ASSERT_TRUE(WriteFileAtomically(Path("pipe"), "through").ok());
  char text[16] = {};
  EXPECT_EQ(read(reader, text, sizeof(text)), 7);
  EXPECT_STREQ(text, "through");
  close(reader);
  struct stat info;
  ASSERT_EQ(lstat(Path("pipe").c_str(), &info), 0);
  EXPECT_TRUE(S_ISFIFO(info.st_mode));
  EXPECT_EQ(folder_.NumFiles(), 1u);
}

TEST_F(AtomicFileTest, ReplacesWhatALinkPointsTo) {
  ASSERT_TRUE(WriteFileAtomically(Path("target"), "old").ok());
  ASSERT_EQ(symlink(Path("target").c_str(), Path("link").c_str()), 0);
  ASSERT_TRUE(WriteFileAtomically(Path("link"), "new").ok());
  EXPECT_EQ(TempFolder::Read(Path("target")), "new");
  struct stat info;
  ASSERT_EQ(lstat(Path("link").c_str(), &info), 0);
  EXPECT_TRUE(S_ISLNK(info.st_mode));
}

TEST_F(AtomicFileTest, AFolderIsNotReplaced) {
  ASSERT_EQ(mkdir(Path("folder").c_str(), 0700), 0);
  EXPECT_FALSE(WriteFileAtomically(Path("folder"), "x").ok());
  EXPECT_EQ(folder_.NumFiles(), 1u);
}

TEST_F(AtomicFileTest, SaysWhatCannotBeWritten) {
  const absl::Status status = WriteFileAtomically(Path("no/such"), "x");
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "cannot create '" + Path("no/such") + "': No such file or directory");
  std::filesystem::create_directory(Path("folder"));
  EXPECT_FALSE(WriteFileAtomically(Path("folder"), "x").ok());
  EXPECT_EQ(folder_.NumFiles(), 1u);
}

TEST_F(AtomicFileTest, MappedFileShowsTheContents) {
  ASSERT_TRUE(WriteFileAtomically(Path("a"), "hello").ok());
  ASSERT_TRUE(WriteFileAtomically(Path("empty"), "").ok());
  auto file = MappedFile::Open(Path("a"), MappedFile::Access::kNormal);
  ASSERT_TRUE(file.ok());
  const uint8_t* address = file->bytes().data();
  MappedFile moved = *std::move(file);
  EXPECT_EQ(moved.bytes().data(), address);
  EXPECT_EQ(std::string(moved.bytes().begin(), moved.bytes().end()), "hello");
  EXPECT_EQ(MappedFile::Open(Path("empty"), MappedFile::Access::kNormal)->bytes().size(), 0u);
}

TEST_F(AtomicFileTest, MappedFileRefuses) {
  EXPECT_EQ(MappedFile::Open(Path("none"), MappedFile::Access::kNormal).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(MappedFile::Open(Path("."), MappedFile::Access::kNormal).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(FolderOfTest, ThePartBeforeTheLastName) {
  EXPECT_EQ(FolderOf("a"), ".");
  EXPECT_EQ(FolderOf("a/b"), "a");
  EXPECT_EQ(FolderOf("/b"), "/");
  EXPECT_EQ(FolderOf("/a/b"), "/a");
  EXPECT_EQ(FolderOf("a/b/"), "a/b");
}

}  // namespace
}  // namespace ft
