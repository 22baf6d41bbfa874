#include "runtime/backends/cuda/libraries/cudart_driver.h"

#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/backends/cuda/device/open_cuda_device.h"

namespace ft::cuda {
namespace {

std::string Line(int error, int driver_version) {
  const absl::Status status = DeviceCount(error, 0, driver_version, 13000).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  const std::string line(status.message());
  EXPECT_EQ(line.find('\n'), std::string::npos) << line;
  EXPECT_NE(line.find("use --device=cpu"), std::string::npos) << line;
  return line;
}

TEST(DeviceCountTest, TroubleOfTheDriverIsALineForTheUser) {
  EXPECT_EQ(Line(cudaErrorInsufficientDriver, 0),
            "no CUDA driver was found, or none that loads (libcuda.so.1); install NVIDIA's driver, or use "
            "--device=cpu");
  EXPECT_EQ(
      Line(cudaErrorInsufficientDriver, 12040),
      "the driver knows CUDA 12.4, this program needs 13.0; update NVIDIA's driver, put the folder of its "
      "package cuda-compat (data center GPUs) on LD_LIBRARY_PATH, or use --device=cpu");
  // Minor versions work with each other.
  EXPECT_NE(DeviceCount(cudaErrorInsufficientDriver, 0, 11080, 12080).status().message().find("needs 12.0"),
            std::string::npos);
  EXPECT_NE(Line(cudaErrorStubLibrary, 13000).find("stub"), std::string::npos);
  EXPECT_NE(Line(cudaErrorSystemNotReady, 13000).find("nvidia-fabricmanager"), std::string::npos);
  EXPECT_NE(Line(cudaErrorSystemDriverMismatch, 13000).find("different versions"), std::string::npos);
  EXPECT_NE(Line(cudaErrorInitializationError, 13000).find("(cudaErrorInitializationError)"),
            std::string::npos);
}

TEST(DeviceCountTest, NoDeviceIsNoError) {
  EXPECT_EQ(*DeviceCount(cudaErrorNoDevice, 0, 13000, 13000), 0);
  EXPECT_EQ(*DeviceCount(cudaSuccess, 3, 13000, 13000), 3);
}

// The driver of this machine, if any: without one, the same line from the very top.
TEST(CudartDriverTest, WithoutADriverOpeningTheDeviceIsThatLine) {
  CudartDriver driver;
  const absl::StatusOr<int> devices = driver.CountDevices();
  if (devices.ok() && *devices > 0) GTEST_SKIP() << "there are CUDA devices";
  const absl::Status opened = OpenCudaDevice(0, {}).status();
  EXPECT_EQ(opened.code(), absl::StatusCode::kFailedPrecondition);
  if (!devices.ok()) {
    EXPECT_EQ(opened, devices.status());
  }
  EXPECT_NE(std::string(opened.message()).find("use --device=cpu"), std::string::npos) << opened;
  std::printf("%s\n", std::string(opened.message()).c_str());
}

class CudartDriverOnDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const absl::StatusOr<int> devices = driver_.CountDevices();
    if (!devices.ok() || *devices == 0) GTEST_SKIP() << "skipped: no CUDA device";
    ASSERT_TRUE(driver_.SetDevice(0).ok());
  }
  CudartDriver driver_;
};

TEST_F(CudartDriverOnDeviceTest, CopiesInAGraph) {
  constexpr int kCount = 1000;
  constexpr uint64_t kBytes = kCount * sizeof(int);
  int* const host = static_cast<int*>(*driver_.MallocHost(kBytes));
  void* const a = *driver_.Malloc(kBytes);
  void* const b = *driver_.Malloc(kBytes);
  ASSERT_TRUE(driver_.Zero(b, kBytes).ok());
  std::vector<int> values(kCount);
  for (int i = 0; i < kCount; ++i) values[i] = i;
  ASSERT_TRUE(driver_.Copy(a, values.data(), kBytes).ok());
  const StreamHandle stream = *driver_.CreateStream(true), other = *driver_.CreateStream(false);
  const EventHandle fork = *driver_.CreateEvent(false), join = *driver_.CreateEvent(false);
  ASSERT_TRUE(driver_.BeginCapture(stream).ok());
  EXPECT_TRUE(driver_.Record(fork, stream).ok());
  EXPECT_TRUE(driver_.Wait(fork, other).ok());
  EXPECT_TRUE(driver_.CopyAsync(b, a, kBytes, other).ok());
  EXPECT_TRUE(driver_.Record(join, other).ok());
  EXPECT_TRUE(driver_.Wait(join, stream).ok());
  EXPECT_TRUE(driver_.CopyAsync(host, b, kBytes, stream).ok());
  const absl::StatusOr<GraphHandle> graph = driver_.EndCapture(stream);
  ASSERT_TRUE(graph.ok()) << graph.status();
  unsigned long long flags = 0;
  EXPECT_EQ(cudaGraphExecGetFlags(*graph, &flags), cudaSuccess);
  EXPECT_NE(flags & cudaGraphInstantiateFlagUseNodePriority, 0u) << "streams have different priorities";
  host[7] = -1;
  ASSERT_TRUE(driver_.LaunchGraph(*graph, stream).ok());
  ASSERT_TRUE(driver_.Synchronize(stream).ok());
  EXPECT_EQ(std::vector<int>(host, host + kCount), values);
  EXPECT_TRUE(driver_.DestroyGraph(*graph).ok());
  EXPECT_TRUE(driver_.DestroyEvent(fork).ok() && driver_.DestroyEvent(join).ok());
  EXPECT_TRUE(driver_.DestroyStream(stream).ok() && driver_.DestroyStream(other).ok());
  EXPECT_TRUE(driver_.Free(a).ok() && driver_.Free(b).ok() && driver_.FreeHost(host).ok());
}

TEST_F(CudartDriverOnDeviceTest, MemoryThatOthersCanMapIsReadAndWritten) {
  const uint64_t page = driver_.MappablePageBytes();
  if (page == 0) GTEST_SKIP() << "skipped: none on this device";
  const FreeMemory before = *driver_.MemoryInfo();
  const absl::StatusOr<MappableMemory> memory = driver_.MallocMappable(page * 40 + 1);
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_EQ(memory->bytes, page * 41);
  EXPECT_GE(before.free - driver_.MemoryInfo()->free, page * 41);
  auto* const data = static_cast<char*>(memory->data);
  ASSERT_TRUE(driver_.Zero(data, memory->bytes).ok());
  const std::string text = "fourteen bytes";
  ASSERT_TRUE(driver_.Copy(data + page * 41 - text.size(), text.data(), text.size()).ok());
  std::string back(text.size() + 1, 'x');
  ASSERT_TRUE(driver_.Copy(back.data(), data + page * 41 - back.size(), back.size()).ok());
  EXPECT_EQ(back, std::string(1, '\0') + text);
  ASSERT_TRUE(driver_.FreeMappable(*memory).ok());
  EXPECT_EQ(driver_.MemoryInfo()->free, before.free);
}

TEST_F(CudartDriverOnDeviceTest, ErrorsNameCallAndPlaceAndAreForgotten) {
  const absl::Status status = driver_.Malloc(uint64_t{1} << 60).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  const std::string message(status.message());
  EXPECT_EQ(message.find("cudaMalloc(1152921504606846976) failed: out of memory "
                         "(cudaErrorMemoryAllocation), at cudart_driver.cc:"),
            0u)
      << message;
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

}  // namespace
}  // namespace ft::cuda
