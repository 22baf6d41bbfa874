#include "runtime/base/memory_room.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "gtest/gtest.h"
#include "runtime/base/testing/temp_folder.h"

namespace ft {
namespace {

class MemoryRoomTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(folder_.Path(path)).parent_path());
    folder_.Write(path, text);
  }
  std::vector<MemoryPool> Pools() { return MemoryPoolsOfProcess(folder_.Path("")); }

  const TempFolder folder_;
};

TEST_F(MemoryRoomTest, NothingIsSaidWhereTheSystemSaysNothing) { EXPECT_TRUE(Pools().empty()); }

TEST_F(MemoryRoomTest, EveryGroupAboveWithALimitIsAPool) {
  Write("proc/meminfo", "MemTotal:       100 kB\nMemFree: 1 kB\nMemAvailable:     64 kB\nSwapFree: 9 kB\n");
  Write("proc/sys/kernel/random/boot_id", "some-boot\n");
  Write("proc/self/cgroup", "0::/job/step/task\n");
  Write("sys/fs/cgroup/job/memory.max", "5000\n");
  Write("sys/fs/cgroup/job/memory.current", "1200\n");
  Write("sys/fs/cgroup/job/memory.stat",
        "anon 700\nfile 500\nworkingset_x inactive_file 7\ninactive_file 300\n");
  Write("sys/fs/cgroup/job/step/memory.max", "max\n");
  Write("sys/fs/cgroup/job/step/memory.current", "900\n");
  Write("sys/fs/cgroup/job/step/task/memory.max", "800\n");
  Write("sys/fs/cgroup/job/step/task/memory.current", "900\n");
  const std::vector<MemoryPool> pools = Pools();
  ASSERT_EQ(pools.size(), 3u);
  EXPECT_EQ(pools[0].name, "memory limit of cgroup /job/step/task");
  EXPECT_EQ(pools[0].room, 0u);  // more is taken than the limit has
  EXPECT_EQ(pools[1].name, "memory limit of cgroup /job");
  EXPECT_EQ(pools[1].room, 5000u - 1200 + 300);
  EXPECT_EQ(pools[2].name, "memory of the host");
  EXPECT_EQ(pools[2].room, 64u << 10);
  EXPECT_EQ(pools[2].system, "some-boot");
}

TEST_F(MemoryRoomTest, Version1AndAContainerThatSeesItsGroupAsTheRoot) {
  Write("proc/self/cgroup", "9:cpu,cpuacct:/x\n4:memory:/docker/0123\n1:name=systemd:/x\n");
  Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "1000\n");
  Write("sys/fs/cgroup/memory/memory.usage_in_bytes", "600\n");
  Write("sys/fs/cgroup/memory/memory.stat", "inactive_file 1\ntotal_inactive_file 100\n");
  const std::vector<MemoryPool> pools = Pools();
  ASSERT_EQ(pools.size(), 1u);
  EXPECT_EQ(pools[0].name, "memory limit of cgroup /");
  EXPECT_EQ(pools[0].room, 500u);
  Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_TRUE(Pools().empty());
}

TEST_F(MemoryRoomTest, NonsenseIsNoPool) {
  Write("proc/self/cgroup", "0::/../../etc\nnonsense\n0\n:\n0::\n");
  Write("proc/meminfo", "MemAvailable: many kB\n");
  EXPECT_TRUE(Pools().empty());
}

TEST_F(MemoryRoomTest, ThisProcessHasSome) {
  const std::vector<MemoryPool> pools = MemoryPoolsOfProcess();
  ASSERT_FALSE(pools.empty());
  EXPECT_EQ(pools.back().name, "memory of the host");
  EXPECT_GT(pools.back().room, 0u);
}

TEST_F(MemoryRoomTest, AddressesBelowALimit) {
  if (fork() == 0) {
    const rlimit limit = {.rlim_cur = rlim_t{1} << 40, .rlim_max = rlim_t{1} << 40};
    if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(2);
    const std::optional<uint64_t> left = AddressSpaceLeft();
    _exit(left.has_value() && *left > 0 && *left < limit.rlim_cur ? 0 : 1);
  }
  int status = -1;
  wait(&status);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace ft
