#include "runtime/backends/cuda/device/choose_device.h"

#include <cstdlib>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "test/doubles/cuda/emulated_driver.h"

namespace ft::cuda {
namespace {

// A host with `count` equal devices.
class HostWith {
 public:
  HostWith(int count, int major, int minor) : driver_(Machine(count, major, minor)) {}

  emulation::EmulatedDriver& driver() { return driver_; }
  // The last device that was made current; -1: none was.
  int current() const {
    for (int device = 0; device < 16; ++device)
      if (!driver_.Log().empty() && driver_.Log().back().what == absl::StrCat("SetDevice ", device))
        return device;
    return -1;
  }

 private:
  static emulation::EmulatedMachine Machine(int count, int major, int minor) {
    emulation::EmulatedMachine machine;
    machine.devices = count;
    machine.properties = {.name = "Model", .major = major, .minor = minor};
    return machine;
  }

  emulation::EmulatedDriver driver_;
};

class ChooseDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override { unsetenv("CUDA_VISIBLE_DEVICES"); }
  static std::string Error(HostWith& host, int local_rank) { return Error(host.driver(), local_rank); }
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
  const absl::StatusOr<ChosenDevice> chosen = ChooseDevice(host.driver(), 2, false);
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_EQ(chosen->number, 2);
  EXPECT_EQ(chosen->properties.name, "Model");
  EXPECT_EQ(host.current(), 2);
}

TEST_F(ChooseDeviceTest, WhatTheDriverSaysAboutItselfIsPassedOn) {
  emulation::EmulatedDriver driver({.no_driver = "no CUDA driver was found"});
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
  EXPECT_EQ(two.current(), -1);
}

TEST_F(ChooseDeviceTest, AnOnlyDeviceIsTakenWhateverTheRank) {
  for (const int rank : {0, 1, 7}) {
    HostWith host(1, 9, 0);
    const absl::StatusOr<ChosenDevice> chosen = ChooseDevice(host.driver(), rank, false);
    ASSERT_TRUE(chosen.ok()) << chosen.status();
    EXPECT_EQ(chosen->number, 0);
    EXPECT_EQ(host.current(), 0);
  }
}

TEST_F(ChooseDeviceTest, RanksThatMayShareTakeTurns) {
  HostWith host(2, 8, 0);
  for (int rank = 0; rank < 6; ++rank) {
    const absl::StatusOr<ChosenDevice> chosen = ChooseDevice(host.driver(), rank, true);
    ASSERT_TRUE(chosen.ok()) << chosen.status();
    EXPECT_EQ(chosen->number, rank % 2);
  }
}

TEST_F(ChooseDeviceTest, TooOld) {
  HostWith host(1, 7, 5);
  EXPECT_EQ(Error(host, 0),
            "CUDA device 0 (Model) has compute capability 7.5, too old: 8.0 or newer is needed; use "
            "--device=cpu");
  EXPECT_EQ(host.current(), -1);
}

TEST_F(ChooseDeviceTest, Busy) {
  HostWith host(1, 8, 0);
  host.driver().failures["SetDevice"] = absl::InternalError("cudaSetDevice(0) failed: busy");
  EXPECT_EQ(Error(host, 0),
            "CUDA device 0 (Model) cannot be used, is it busy or in exclusive mode? cudaSetDevice(0) failed: "
            "busy");
}

}  // namespace
}  // namespace ft::cuda
