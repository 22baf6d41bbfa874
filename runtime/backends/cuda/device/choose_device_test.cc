#include "runtime/backends/cuda/device/choose_device.h"

#include <cstdlib>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "test/doubles/cuda/scripted_driver.h"

namespace ft::cuda {
namespace {

// A host with `count` equal devices, of which nothing but their description is asked.
class HostWith final : public ScriptedDriver {
 public:
  HostWith(int count, int major, int minor)
      : ScriptedDriver(nullptr),
        count_(count),
        properties_{.name = "Model", .major = major, .minor = minor} {}

  absl::StatusOr<int> CountDevices() override { return count_; }
  absl::StatusOr<DeviceProperties> Properties(int device) override {
    EXPECT_LT(device, count_);
    return properties_;
  }
  absl::Status SetDevice(int device) override {
    current = device;
    return set_device;
  }

  int current = -1;
  absl::Status set_device;

 private:
  const int count_;
  const DeviceProperties properties_;
};

class ChooseDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override { unsetenv("CUDA_VISIBLE_DEVICES"); }
  static std::string Error(Driver& driver, int local_rank) {
    const absl::StatusOr<ChosenDevice> chosen = ChooseDevice(driver, local_rank, /*may_share=*/false);
    EXPECT_EQ(chosen.status().code(), absl::StatusCode::kFailedPrecondition);
    const std::string message(chosen.status().message());
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    return message;
  }
};

TEST_F(ChooseDeviceTest, ARankGetsTheDeviceOfItsNumberAndItIsMadeCurrent) {
  HostWith host(4, 9, 0);
  const absl::StatusOr<ChosenDevice> chosen = ChooseDevice(host, 2, false);
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_EQ(chosen->number, 2);
  EXPECT_EQ(chosen->properties.name, "Model");
  EXPECT_EQ(host.current, 2);
}

TEST_F(ChooseDeviceTest, WhatTheDriverSaysAboutItselfIsPassedOn) {
  ScriptedDriver driver(nullptr);
  driver.failures["CountDevices"] = absl::FailedPreconditionError("no CUDA driver was found");
  EXPECT_EQ(Error(driver, 0), "no CUDA driver was found");
}

TEST_F(ChooseDeviceTest, NoDevice) {
  HostWith host(0, 9, 0);
  EXPECT_EQ(Error(host, 0), "there is a CUDA driver, but no CUDA device; use --device=cpu");
  setenv("CUDA_VISIBLE_DEVICES", "7", 1);
  EXPECT_EQ(Error(host, 0),
            "there is a CUDA driver, but no CUDA device (CUDA_VISIBLE_DEVICES is \"7\"); use --device=cpu");
}

TEST_F(ChooseDeviceTest, TooFewDevices) {
  HostWith two(2, 9, 0);
  EXPECT_EQ(
      Error(two, 3),
      "LOCAL_RANK 3 needs CUDA device 3, but there are 2 CUDA devices, 0 to 1; start at most 2 ranks on "
      "this host, show each rank one device of its own, or let ranks share them (--share-gpus=on, with NCCL "
      "2.30)");
  EXPECT_EQ(two.current, -1);
}

TEST_F(ChooseDeviceTest, AnOnlyDeviceIsTakenWhateverTheRank) {
  for (const int rank : {0, 1, 7}) {
    HostWith host(1, 9, 0);
    const absl::StatusOr<ChosenDevice> chosen = ChooseDevice(host, rank, false);
    ASSERT_TRUE(chosen.ok()) << chosen.status();
    EXPECT_EQ(chosen->number, 0);
    EXPECT_EQ(host.current, 0);
  }
}

TEST_F(ChooseDeviceTest, RanksThatMayShareTakeTurns) {
  HostWith host(2, 8, 0);
  for (int rank = 0; rank < 6; ++rank) {
    const absl::StatusOr<ChosenDevice> chosen = ChooseDevice(host, rank, true);
    ASSERT_TRUE(chosen.ok()) << chosen.status();
    EXPECT_EQ(chosen->number, rank % 2);
  }
}

TEST_F(ChooseDeviceTest, TooOld) {
  HostWith host(1, 7, 5);
  EXPECT_EQ(Error(host, 0),
            "CUDA device 0 (Model) has compute capability 7.5, too old: 8.0 or newer is needed; use "
            "--device=cpu");
  EXPECT_EQ(host.current, -1);
}

TEST_F(ChooseDeviceTest, Busy) {
  HostWith host(1, 8, 0);
  host.set_device = absl::InternalError("cudaSetDevice(0) failed: busy");
  EXPECT_EQ(Error(host, 0),
            "CUDA device 0 (Model) cannot be used, is it busy or in exclusive mode? cudaSetDevice(0) failed: "
            "busy");
}

}  // namespace
}  // namespace ft::cuda
