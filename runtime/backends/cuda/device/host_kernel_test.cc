#include "runtime/backends/cuda/device/host_kernel.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "test/doubles/cuda/device_fixture.h"

namespace ft::cuda {
namespace {

class OneKernel final : public HostKernels {
 public:
  explicit OneKernel(std::function<void()> run) : run_(std::move(run)) {}
  absl::StatusOr<std::unique_ptr<HostTask>> Create(const std::string& name, const KernelOperands&,
                                                   const KernelAttributes&) override {
    if (name != "update") return absl::FailedPreconditionError("there is update alone");
    return std::make_unique<FunctionTask>([this] { return run_(), absl::OkStatus(); });
  }

 private:
  const std::function<void()> run_;
};

// A kernel of the host on a stream of its own, between two of the device.
class HostKernelTest : public CudaDeviceTest, public ::testing::WithParamInterface<emulation::Schedule> {
 protected:
  HostKernelTest()
      : CudaDeviceTest({.schedule = GetParam()}), host_kernels_([this] { order_.push_back(2); }) {
    options_.host_kernels = &host_kernels_;
  }

  void SetUp() override {
    compute_ = NewStream("compute");
    host_ = NewStream("host_compute");
    fork_ = device().CreateEvent();
    join_ = device().CreateEvent();
    kernel_ = *device().CreateHostKernel("update", {}, {});
    begin_ = {Launch(1), Command::Record(fork_.get())};
    middle_ = {Command::Wait(fork_.get(), &info_), Command::Launch(kernel_.get(), &info_),
               Command::Record(join_.get())};
    end_ = {Command::Wait(join_.get(), &info_), Launch(3)};
  }

  void Enqueue() {
    compute_->Enqueue(begin_);
    host_->Enqueue(middle_);
    compute_->Enqueue(end_);
  }

  OneKernel host_kernels_;
  std::unique_ptr<Stream> compute_, host_;
  std::unique_ptr<Event> fork_, join_;
  std::unique_ptr<Kernel> kernel_;
  std::vector<Command> begin_, middle_, end_;
};

TEST_P(HostKernelTest, RunsWhenItsStreamComesToIt) {
  Enqueue();
  compute_->Synchronize();
  EXPECT_EQ(order_, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(Count("LaunchHost"), 1);
  EXPECT_TRUE(device().status().ok()) << device().status();
}

TEST_P(HostKernelTest, ARecordingRunsItEachTime) {
  const auto recording = device().Record(*compute_, [this] { Enqueue(); });
  ASSERT_TRUE(recording.ok()) << recording.status();
  EXPECT_TRUE(order_.empty()) << "recording runs nothing";
  driver_->ClearLog();
  for (int run = 0; run < 3; ++run) {
    order_.clear();
    (*recording)->Start();
    compute_->Synchronize();
    EXPECT_EQ(order_, (std::vector<int>{1, 2, 3}));
  }
  EXPECT_EQ(Count("LaunchHost"), 0);
}

TEST_P(HostKernelTest, NothingOfItRunsOnceItsMemoryIsGone) {
  const auto recording = device().Record(*compute_, [this] { Enqueue(); });
  ASSERT_TRUE(recording.ok()) << recording.status();
  (*recording)->Start();
  const size_t before = order_.size();
  device().Cancel(absl::UnavailableError("rank 1 was lost"));
  kernel_ = nullptr;
  driver_->Synchronize(Handle(*compute_)).IgnoreError();  // CUDA goes on with what it has
  const bool late = GetParam() == emulation::Schedule::kLate;
  EXPECT_EQ(before, late ? 0u : 3u);
  EXPECT_EQ(order_, late ? (std::vector<int>{1, 3}) : (std::vector<int>{1, 2, 3}));
}

TEST_P(HostKernelTest, WhatCudaRefusesIsTheDevicesFailure) {
  driver_->failures["LaunchHost"] = absl::InternalError("cudaLaunchHostFunc() failed");
  Enqueue();
  EXPECT_EQ(device().status(), absl::InternalError("cudaLaunchHostFunc() failed"));
}

TEST_P(HostKernelTest, UnknownOnesAreRefused) {
  EXPECT_EQ(device().CreateHostKernel("matmul", {}, {}).status(),
            absl::FailedPreconditionError("there is update alone"));
}

TEST_F(CudaDeviceTest, ADeviceWithoutKernelsOfTheHostSaysSo) {
  EXPECT_EQ(device().CreateHostKernel("update", {}, {}).status(),
            absl::FailedPreconditionError(
                "the cuda device was opened without kernels of the host, such as 'update'"));
}

INSTANTIATE_TEST_SUITE_P(Schedules, HostKernelTest,
                         ::testing::Values(emulation::Schedule::kAtOnce, emulation::Schedule::kLate));

}  // namespace
}  // namespace ft::cuda
