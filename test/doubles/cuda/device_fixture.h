// A CUDA device over the emulated driver, with a log of the driver's calls and kernels that write down when
// they run.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/backends/cuda/device/cuda_device.h"
#include "runtime/backends/cuda/device_code/gpu.h"
#include "test/doubles/cuda/emulated_driver.h"
#include "test/doubles/cuda/reference_products.h"

namespace ft::cuda {

class FunctionTask final : public HostTask {
 public:
  explicit FunctionTask(std::function<absl::Status()> run) : run_(std::move(run)) {}
  absl::Status Run() override { return run_(); }

 private:
  const std::function<absl::Status()> run_;
};

class CudaDeviceTest : public ::testing::Test {
 protected:
  explicit CudaDeviceTest(emulation::EmulatedMachine machine = {}) {
    auto driver = std::make_unique<emulation::EmulatedDriver>(machine);
    driver_ = driver.get();
    platform_.driver = std::move(driver);
    platform_.properties = machine.properties;
    platform_.products = std::make_unique<emulation::ReferenceProducts>();
  }

  // Once; `platform_` and `options_` can be changed before.
  CudaDevice& device() {
    if (device_ != nullptr) return *device_;
    absl::StatusOr<std::unique_ptr<CudaDevice>> device =
        CudaDevice::Create(std::move(platform_), {}, options_);
    EXPECT_TRUE(device.ok()) << device.status();
    device_ = *std::move(device);
    driver_->ClearLog();
    return *device_;
  }

  std::unique_ptr<Stream> NewStream(const std::string& name) { return *device().CreateStream(name, 4); }

  static StreamHandle Handle(const Stream& stream) { return static_cast<StreamHandle>(stream.native()); }

  // A kernel that appends `value` to order_ when it runs.
  Kernel* Note(int value) {
    kernels_.push_back(*MakeKernel([this, value](StreamHandle stream) {
      return emulation::EnqueueHost(stream, "note", [this, value] { return order_.push_back(value), 0; });
    }));
    return kernels_.back().get();
  }

  Command Launch(int value) { return Command::Launch(Note(value), &info_); }

  // What was called: "Record s0 e0".
  std::vector<std::string> Log() const {
    std::vector<std::string> lines;
    for (const emulation::Call& call : driver_->Log()) lines.push_back(call.ToString());
    return lines;
  }

  // Calls that begin so.
  int Count(const std::string& call) const {
    const std::vector<std::string> log = Log();
    return static_cast<int>(std::count_if(log.begin(), log.end(),
                                          [&](const std::string& line) { return line.starts_with(call); }));
  }

  // Kernels that were launched to mark where a stream is.
  int CountMarks() const {
    int marks = 0;
    for (const char* name : {"::TaskBegin", "::TaskEnd", "::WaitBegin", "::WaitEnd"}) {
      for (const emulation::Call& call : driver_->Log()) marks += call.what.ends_with(name) ? 1 : 0;
    }
    return marks;
  }

  emulation::EmulatedDriver* driver_;  // the device's
  Platform platform_;
  CudaDeviceOptions options_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
  std::vector<int> order_;
  CommandInfo info_{.title = "note h.0", .category = "forward", .instruction = 12};

 private:
  std::unique_ptr<CudaDevice> device_;
};

}  // namespace ft::cuda
