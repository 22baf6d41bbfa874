#include "runtime/base/direct_io.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include "runtime/base/streaming_copy.h"
#include "runtime/base/testing/temp_folder.h"

namespace ft {
namespace {

TEST(StreamingCopyTest, CopiesTheseBytesAndNoOthers) {
  constexpr size_t kRoom = 20'000;
  std::vector<uint8_t> from(kRoom);
  for (size_t i = 0; i < kRoom; ++i) from[i] = static_cast<uint8_t>(i * 131 + (i >> 8));
  for (const size_t bytes : {0, 1, 63, 4095, 4096, 4097, 4159, 4160, 10'000, 16'384}) {
    for (const size_t to_offset : {0, 1, 15, 16, 63}) {
      for (const size_t from_offset : {0, 7, 64}) {
        std::vector<uint8_t> to(kRoom, 0xEE), expected = to;
        StreamingCopy(to.data() + to_offset, from.data() + from_offset, bytes);
        for (size_t i = 0; i < bytes; ++i) expected[to_offset + i] = from[from_offset + i];
        ASSERT_EQ(to, expected) << bytes << " bytes from " << from_offset << " to " << to_offset;
      }
    }
  }
}

TEST(DirectIoTest, BuffersAreAligned) {
  constexpr size_t kHugePage = size_t{2} << 20;
  for (const size_t bytes : {size_t{1}, kHugePage / 2, kHugePage, 3 * kHugePage / 2 + 1}) {
    const DirectBuffer buffer(bytes);
    const size_t alignment = bytes < kHugePage ? kDirectBytes : kHugePage;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % alignment, 0u) << bytes;
    EXPECT_EQ(buffer.size(), bytes);
    buffer.data()[0] = buffer.data()[bytes - 1] = std::byte{1};
  }
}

TEST(DirectIoTest, WhatIsNoFileTakesNone) {
  EXPECT_FALSE(TakesDirect(-1));
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_FALSE(TakesDirect(ends[0]));
  close(ends[0]);
  close(ends[1]);
}

// Where the file system says that it can, it does.
TEST(DirectIoTest, WhatIsSaidHolds) {
  const TempFolder folder;
  const int fd = open(folder.Path("file").c_str(), O_RDWR | O_CREAT, 0666);
  ASSERT_GE(fd, 0);
  if (!TakesDirect(fd)) {
    close(fd);
    GTEST_SKIP() << "the file system of " << folder.Path("file") << " does not say that it does";
  }
  const DirectBuffer out(2 * kDirectBytes), in(2 * kDirectBytes);
  std::memset(out.data(), 0x5A, out.size());
  ASSERT_TRUE(SetDirect(fd, true));
  EXPECT_NE(fcntl(fd, F_GETFL) & O_DIRECT, 0);
  EXPECT_EQ(pwrite(fd, out.data(), out.size(), kDirectBytes), static_cast<ssize_t>(out.size()));
  EXPECT_EQ(pread(fd, in.data(), in.size(), kDirectBytes), static_cast<ssize_t>(in.size()));
  EXPECT_EQ(std::memcmp(in.data(), out.data(), in.size()), 0);
  ASSERT_TRUE(SetDirect(fd, false));
  EXPECT_EQ(pwrite(fd, out.data() + 1, 5, 3), 5);
  close(fd);
}

}  // namespace
}  // namespace ft
