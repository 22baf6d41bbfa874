#include "runtime/backends/cuda/device/cuda_device.h"

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/backends/cuda/device/open_cuda_device.h"
#include "test/doubles/cuda/device_fixture.h"

namespace ft::cuda {
namespace {

TEST_F(CudaDeviceTest, AnArenaIsOneAllocationZeroedAndFreed) {
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 20}) {
    device();
    driver_->ClearLog();
    {
      const auto memory = device().Allocate(bytes);
      ASSERT_TRUE(memory.ok()) << memory.status();
      EXPECT_EQ((*memory)->bytes(), bytes);
      ASSERT_NE((*memory)->data(), nullptr);
      std::vector<char> content(bytes + 1, 1);
      ASSERT_TRUE(device().Read(content.data(), (*memory)->data(), bytes).ok());
      content.pop_back();
      EXPECT_EQ(content, std::vector<char>(bytes, 0));
    }
    EXPECT_EQ(Count("Malloc"), 1);
    EXPECT_EQ(Count("Free"), 1);
  }
}

TEST_F(CudaDeviceTest, MemoryThatOthersCanMapIsOfWholePages) {
  ASSERT_EQ(device().mappable_page_bytes(), uint64_t{2} << 20);
  const uint64_t before = device().used_bytes();
  {
    const auto memory = device().AllocateMappable(3000000);
    ASSERT_TRUE(memory.ok()) << memory.status();
    EXPECT_EQ((*memory)->bytes(), 3000000u);
    EXPECT_EQ(device().used_bytes() - before, 4194304u);
    std::vector<char> content(3000000, 1);
    ASSERT_TRUE(device().Read(content.data(), (*memory)->data(), content.size()).ok());
    EXPECT_EQ(content, std::vector<char>(3000000, 0));
  }
  EXPECT_EQ(device().used_bytes(), before);
  EXPECT_EQ(Count("MallocMappable 3000000"), 1);
  EXPECT_EQ(Count("FreeMappable"), 1);
  EXPECT_EQ(device().notes(),
            std::vector<std::string>{"took 4194304 bytes of memory that ranks of this host can "
                                     "map, 1194304 more than asked"});
}

TEST_F(CudaDeviceTest, PinnedMemoryIsZeroedAndFreed) {
  {
    const auto memory = device().AllocateHost(1000);
    ASSERT_TRUE(memory.ok()) << memory.status();
    const char* data = static_cast<const char*>((*memory)->data());
    EXPECT_EQ(std::vector<char>(data, data + 1000), std::vector<char>(1000, 0));
  }
  EXPECT_EQ(Count("MallocHost 1000"), 1);
  EXPECT_EQ(Count("FreeHost"), 1);
}

TEST_F(CudaDeviceTest, LargerPinnedMemoryIsFilledByThreadsAndLocked) {
  constexpr uint64_t kBytes = uint64_t{65} << 20;
  {
    const auto memory = device().AllocateHost(kBytes);
    ASSERT_TRUE(memory.ok()) << memory.status();
    const char* data = static_cast<const char*>((*memory)->data());
    EXPECT_EQ(std::vector<char>(data, data + kBytes), std::vector<char>(kBytes, 0));
    ASSERT_FALSE(device().notes().empty());
    EXPECT_EQ(device().notes().back().rfind("locked 0.06 GiB of host memory in ", 0), 0u);
  }
  EXPECT_EQ(Count("LockHost 68157440"), 1);
  EXPECT_EQ(Count("UnlockHost"), 1);
  EXPECT_EQ(Count("MallocHost 68157440"), 0);
  driver_->failures["LockHost"] = absl::InternalError("cudaHostRegister failed: not supported");
  EXPECT_TRUE(device().AllocateHost(kBytes).ok()) << "by the driver's own pages";
  EXPECT_EQ(Count("MallocHost 68157440"), 1);
}

// With 4 GiB of memory, 1 of which others use, and 70 MiB that can be locked on the host.
class SmallDeviceTest : public CudaDeviceTest {
 protected:
  static emulation::EmulatedMachine Small() {
    emulation::EmulatedMachine machine;
    machine.properties.total_bytes = uint64_t{4} << 30;
    machine.pinnable_bytes = uint64_t{70} << 20;
    return machine;
  }
  SmallDeviceTest() : CudaDeviceTest(Small()) {}
};

TEST_F(SmallDeviceTest, OutOfMemoryNamesWantedFreeAndDevice) {
  EXPECT_EQ(device().used_bytes(), uint64_t{1} << 30);
  EXPECT_EQ(
      device().Allocate(uint64_t{5} << 30).status(),
      absl::ResourceExhaustedError(
          "the arena needs 5368709120 bytes (5.00 GiB), CUDA device 0 (NVIDIA H200) has 3221225472 bytes "
          "(3.00 GiB) free of 4294967296 bytes (4.00 GiB); use a smaller batch, more ranks or a strategy "
          "that shards more, or end what else runs there"));
  const absl::Status host = device().AllocateHost(uint64_t{80} << 20).status();
  EXPECT_EQ(host.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(host.message().find("the system does not lock 83886080 bytes (0.08 GiB) of host memory"), 0u)
      << host;
  EXPECT_NE(host.message().find("out of memory (emulated)"), absl::string_view::npos) << host;
  EXPECT_TRUE(device().status().ok()) << "the caller decides what becomes of a refused arena";
  EXPECT_TRUE(device().Allocate(uint64_t{1} << 20).ok());
}

TEST_F(SmallDeviceTest, OutOfMappableMemoryIsToldTheSame) {
  EXPECT_EQ(device().AllocateMappable(uint64_t{5} << 30).status(),
            device().Allocate(uint64_t{5} << 30).status());
}

// One whose driver knows nothing of virtual memory.
class OldDeviceTest : public CudaDeviceTest {
 protected:
  static emulation::EmulatedMachine Old() {
    emulation::EmulatedMachine machine;
    machine.mappable_page_bytes = 0;
    return machine;
  }
  OldDeviceTest() : CudaDeviceTest(Old()) {}
};

TEST_F(OldDeviceTest, HasNoMemoryThatOthersCanMap) {
  EXPECT_EQ(device().mappable_page_bytes(), 0u);
  EXPECT_TRUE(absl::IsFailedPrecondition(device().AllocateMappable(1000).status()));
  EXPECT_TRUE(device().Allocate(1000).ok());
}

TEST_F(CudaDeviceTest, ADeviceThatCannotRunOurCodeIsRefusedAtTheStart) {
  driver_->failures["the mark after a task"] =
      absl::InternalError("the mark after a task failed: no kernel image");
  EXPECT_EQ(
      CudaDevice::Create(std::move(platform_), {}, {}).status(),
      absl::FailedPreconditionError(
          "CUDA device 0 (NVIDIA H200, compute capability 9.0) does not run this program's kernels: the "
          "mark after a task failed: no kernel image; was it built for that architecture? "
          "(-DFT_CUDA_ARCHITECTURES=90)"));
}

TEST_F(CudaDeviceTest, WriteAndReadMoveBytes) {
  const auto memory = *device().Allocate(100);
  const std::string text = "fourteen bytes";
  char* const at = static_cast<char*>(memory->data()) + 7;
  ASSERT_TRUE(device().Write(at, text.data(), text.size()).ok());
  std::string back(text.size(), ' ');
  ASSERT_TRUE(device().Read(back.data(), at, back.size()).ok());
  EXPECT_EQ(back, text);
}

TEST_F(CudaDeviceTest, AKernelThatIsNotThereIsNamed) {
  EXPECT_EQ(device().CreateKernel("fly", {}, {}).status(),
            absl::FailedPreconditionError("the cuda device has no kernel 'fly'"));
}

TEST_F(CudaDeviceTest, WhatItIsAndWhatItCan) {
  platform_.utilization = [] { return 87.0; };
  EXPECT_EQ(device().name(), "cuda");
  EXPECT_EQ(device().description(),
            "CUDA device 0: NVIDIA H200, compute capability 9.0, 132 multiprocessors, 141.0 GiB; driver for "
            "CUDA 13.0");
  EXPECT_FALSE(device().host_accessible());
  EXPECT_TRUE(device().records());
  EXPECT_EQ(device().peak_flops(DType::kBF16), 989.5e12);
  EXPECT_EQ(device().utilization_percent(), 87.0);
  EXPECT_EQ(device().memory_bytes(), uint64_t{141} << 30);
}

TEST_F(CudaDeviceTest, UtilizationIsUnknownWithoutNvml) { EXPECT_LT(device().utilization_percent(), 0); }

TEST_F(CudaDeviceTest, EachThreadMakesTheDeviceCurrentOnce) {
  const std::unique_ptr<Stream> stream = NewStream("compute");
  EXPECT_EQ(Count("SetDevice"), 0) << "it was when the device was made";
  const std::vector<Command> commands = {Launch(1)};
  std::thread other([&] {
    stream->Enqueue(commands);
    stream->Enqueue(commands);
    stream->Synchronize();
  });
  other.join();
  EXPECT_EQ(Count("SetDevice"), 1);
  EXPECT_EQ(order_, (std::vector<int>{1, 1}));
}

TEST_F(CudaDeviceTest, TwoDevicesOfOneThreadTakeTurns) {
  device();
  Platform platform;
  auto driver = std::make_unique<emulation::EmulatedDriver>();
  const emulation::EmulatedDriver& other = *driver;
  platform.driver = std::move(driver);
  platform.products = std::make_unique<emulation::ReferenceProducts>();
  const auto second = *CudaDevice::Create(std::move(platform), {}, {});
  const size_t before = other.Log().size();
  driver_->ClearLog();
  ASSERT_TRUE(device().Allocate(1).ok());
  ASSERT_TRUE(second->Allocate(1).ok());
  ASSERT_TRUE(device().Allocate(1).ok());
  EXPECT_EQ(Count("SetDevice"), 2);
  const std::vector<emulation::Call> log = other.Log();
  EXPECT_EQ(std::count_if(log.begin() + static_cast<int64_t>(before), log.end(),
                          [](const emulation::Call& call) { return call.what == "SetDevice 0"; }),
            1);
}

TEST_F(CudaDeviceTest, AnEventThatCannotBeMadeIsAFailureOfTheDevice) {
  device();
  driver_->failures["CreateEvent"] = absl::InternalError("no more events");
  const std::unique_ptr<Event> event = device().CreateEvent();
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(device().status(), absl::InternalError("no more events"));
}

// The machine that the emulated platform is opened on.
class OpenCudaDeviceTest : public ::testing::Test {
 protected:
  OpenCudaDeviceTest() { emulation::Machine() = {}; }
  ~OpenCudaDeviceTest() override { emulation::Machine() = {}; }
};

TEST_F(OpenCudaDeviceTest, TheDeviceHasTheKernelsOfThisBackend) {
  emulation::Machine().devices = 2;
  const absl::StatusOr<OpenedDevice> device = OpenCudaDevice(1, {});
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_EQ(device->device->description().find("CUDA device 1: NVIDIA H200"), 0u);
  EXPECT_EQ(device->pci_address, "0000:02:00.0");
  EXPECT_EQ(device->used_before, uint64_t{1} << 30);
  const absl::Status known = device->device->CreateKernel("matmul", {}, {}).status();
  EXPECT_EQ(known.code(), absl::StatusCode::kInvalidArgument) << known;  // without operands
}

TEST_F(OpenCudaDeviceTest, TroubleIsOneLine) {
  emulation::Machine().devices = 2;
  EXPECT_EQ(
      OpenCudaDevice(2, {}).status().message().find("LOCAL_RANK 2 needs CUDA device 2, but there are 2"), 0u);
  emulation::Machine().no_driver = "no CUDA driver was found; use --device=cpu";
  EXPECT_EQ(OpenCudaDevice(0, {}).status(),
            absl::FailedPreconditionError("no CUDA driver was found; use --device=cpu"));
}

}  // namespace
}  // namespace ft::cuda
