#include "runtime/base/resident_memory.h"

#include <cstring>
#include <memory>

#include "gtest/gtest.h"

namespace ft {
namespace {

TEST(ResidentMemoryTest, FollowsWhatIsTouched) {
  constexpr size_t kBytes = size_t{64} << 20;
  const ResidentMemory before = ResidentMemoryOfProcess().value();
  EXPECT_GT(before.now, 0u);
  {
    const std::unique_ptr<char[]> block(new char[kBytes]);
    std::memset(block.get(), 1, kBytes);
    const ResidentMemory with = ResidentMemoryOfProcess().value();
    EXPECT_GE(with.now, before.now + kBytes / 2);  // the system counts in batches
    EXPECT_GE(with.peak, with.now);
  }
  const ResidentMemory after = ResidentMemoryOfProcess().value();
  EXPECT_LT(after.now, before.now + kBytes / 2);
  EXPECT_GE(after.peak, before.now + kBytes / 2);
}

}  // namespace
}  // namespace ft
