#include "runtime/checkpoint/state/write_range.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "runtime/base/direct_io.h"
#include "runtime/base/testing/temp_folder.h"

namespace ft {
namespace {

// Ranges that begin and end beside the borders of what can go past the page cache, lying as in the file or
// not: those bytes change, and no others. Where the file system takes none past the cache, all go through it.
TEST(RangeWriterTest, WritesRangesWhereverTheyLie) {
  const TempFolder folder;
  const std::string path = folder.Path("file");
  constexpr uint64_t kRoom = 6 * kDirectBytes;
  const DirectBuffer data(kRoom);
  for (uint64_t i = 0; i < kRoom; ++i) data.data()[i] = static_cast<std::byte>(i * 7 + (i >> 8) + (i >> 16));
  for (const uint64_t offset :
       {uint64_t{0}, uint64_t{1}, kDirectBytes - 1, kDirectBytes, kDirectBytes + 2048}) {
    for (const uint64_t bytes :
         {uint64_t{0}, uint64_t{5}, kDirectBytes, 2 * kDirectBytes - 1, 3 * kDirectBytes + 1}) {
      for (const uint64_t shift : {uint64_t{0}, uint64_t{512}}) {
        const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0666);
        ASSERT_GE(fd, 0);
        std::string expected(kRoom, '\x33');
        ASSERT_TRUE(WriteAt(fd, path, 0, expected.data(), expected.size()).ok());
        const uint64_t from = (offset + shift) % kDirectBytes;
        RangeWriter writer(fd, path);
        const bool direct = writer.is_direct();
        EXPECT_EQ(direct, TakesDirect(fd));
        ASSERT_TRUE(writer.Write(offset, data.data() + from, bytes).ok());
        EXPECT_EQ(writer.is_direct(), direct) << "the system refused";
        EXPECT_EQ(fcntl(fd, F_GETFL) & O_DIRECT, 0);
        close(fd);
        const char* const begin = static_cast<const char*>(static_cast<const void*>(data.data() + from));
        std::copy_n(begin, bytes, expected.begin() + static_cast<ptrdiff_t>(offset));
        ASSERT_EQ(TempFolder::Read(path), expected)
            << bytes << " bytes at " << offset << ", " << shift << " off";
      }
    }
  }
}

TEST(RangeWriterTest, ErrorsNameTheFile) {
  const TempFolder folder;
  const std::string path = folder.Path("file");
  const int fd = open(path.c_str(), O_RDONLY | O_CREAT, 0666);
  ASSERT_GE(fd, 0);
  const DirectBuffer data(2 * kDirectBytes);
  RangeWriter writer(fd, path);
  const absl::Status status = writer.Write(0, data.data(), data.size());
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find(path), std::string::npos) << status;
  EXPECT_EQ(fcntl(fd, F_GETFL) & O_DIRECT, 0);
  close(fd);
}

}  // namespace
}  // namespace ft
