// Beside this test lies a libnvidia-ml.so.1 of its own (testing/fake_nvml.cc), found where there is no other.
#include "runtime/backends/cuda/libraries/nvml.h"

#include <dlfcn.h>

#include "gtest/gtest.h"

namespace ft::cuda {
namespace {

TEST(NvmlTest, AsksForTheDeviceAtTheAddress) {
  if (dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL) != nullptr)
    GTEST_SKIP() << "the driver of this machine has an NVML";
  EXPECT_FALSE(UtilizationMeter("0000:3C:00.0"));
  const std::function<double()> meter = UtilizationMeter("0000:3B:00.0");
  ASSERT_TRUE(meter);
  EXPECT_EQ(meter(), 42.0);
  EXPECT_EQ(meter(), 43.0);
  EXPECT_LT(meter(), 0) << "unknown once NVML fails";
  EXPECT_EQ(UsedBytes("0000:3B:00.0"), 200u) << "without what the driver keeps";
  EXPECT_FALSE(UsedBytes("0000:3C:00.0").has_value());
  EXPECT_FALSE(UsedBytes("").has_value());
}

}  // namespace
}  // namespace ft::cuda
