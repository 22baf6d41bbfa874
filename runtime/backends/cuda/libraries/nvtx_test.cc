// Run twice: as it is, and with testing/fake_profiler.cc injected as a profiler would be.
#include "runtime/backends/cuda/libraries/nvtx.h"

#include <dlfcn.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "gtest/gtest.h"

namespace ft::cuda {
namespace {

TEST(NvtxRangesTest, ThereAreNoneWithoutAProfilerAndAllWithOne) {
  const std::unique_ptr<ProfilerRanges> ranges = CreateNvtxRanges();
  const char* profiler = std::getenv("NVTX_INJECTION64_PATH");
  if (profiler == nullptr) {
    EXPECT_EQ(ranges, nullptr);
    return;
  }
  ASSERT_NE(ranges, nullptr) << profiler;
  void* library = dlopen(profiler, RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(library, nullptr);
  const auto seen = reinterpret_cast<const char* (*)()>(dlsym(library, "FtRangesSeen"));
  ASSERT_NE(seen, nullptr);
  const std::string before = seen();
  ranges->Push("matmul h.0");
  ranges->Push("inner");
  ranges->Pop();
  ranges->Pop();
  EXPECT_EQ(std::string(seen()), before + "+matmul h.0+inner--");
}

}  // namespace
}  // namespace ft::cuda
