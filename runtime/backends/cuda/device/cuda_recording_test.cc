#include "runtime/backends/cuda/device/cuda_recording.h"

#include <chrono>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"
#include "test/doubles/cuda/device_fixture.h"

namespace ft::cuda {
namespace {

// Kernels on `compute`, with a task on `gather` between them: the shape of every program.
// With a driver that has operations on memory for streams, and with one that has none.
class RecordingTest : public CudaDeviceTest,
                      public ::testing::WithParamInterface<std::tuple<emulation::Schedule, bool>> {
 protected:
  RecordingTest()
      : CudaDeviceTest({.stores = std::get<1>(GetParam()), .schedule = std::get<0>(GetParam())}) {}

  void SetUp() override {
    compute_ = NewStream("compute");
    gather_ = NewStream("gather");
    fork_ = device().CreateEvent();
    join_ = device().CreateEvent();
    task_ = std::make_unique<FunctionTask>([this] {
      ++task_runs_;
      if (!task_status_.ok()) return task_status_;
      const int error = emulation::EnqueueHost(Handle(*gather_), "collective", [this] {
        order_.push_back(2);
        inside_ = gather_->in_flight();
        return 0;
      });
      return error == 0 ? absl::OkStatus() : absl::InternalError("not enqueued");
    });
    begin_ = {Launch(1), Command::Record(fork_.get())};
    middle_ = {Command::Wait(fork_.get(), &info_), Command::Call(task_.get(), &gather_info_),
               Command::Record(join_.get())};
    end_ = {Command::Wait(join_.get(), &info_), Launch(3)};
  }

  void Enqueue() {
    compute_->Enqueue(begin_);
    gather_->Enqueue(middle_);
    compute_->Enqueue(end_);
  }
  void Synchronize() {
    compute_->Synchronize();
    gather_->Synchronize();
  }

  std::unique_ptr<Stream> compute_, gather_;
  std::unique_ptr<Event> fork_, join_;
  std::unique_ptr<FunctionTask> task_;
  CommandInfo gather_info_{.title = "all_gather h.0", .category = "forward", .instruction = 7};
  std::vector<Command> begin_, middle_, end_;
  int task_runs_ = 0;
  absl::Status task_status_;
  InFlight inside_;
};

TEST_P(RecordingTest, AReplayDoesWhatEnqueuingDid) {
  Enqueue();
  Synchronize();
  EXPECT_EQ(order_, (std::vector<int>{1, 2, 3}));
  order_.clear();
  driver_->ClearLog();
  const auto recording = device().Record(*compute_, [this] { Enqueue(); });
  ASSERT_TRUE(recording.ok()) << recording.status();
  EXPECT_TRUE(order_.empty()) << "recording runs nothing";
  EXPECT_EQ(task_runs_, 2) << "but tasks, which enqueue";
  const int events = Count("Record") + Count("Wait");
  EXPECT_EQ(events, 4);
  for (int run = 0; run < 3; ++run) {
    order_.clear();
    driver_->ClearLog();
    (*recording)->Start();
    Synchronize();
    EXPECT_EQ(order_, (std::vector<int>{1, 2, 3}));
    EXPECT_EQ(Count("LaunchGraph"), 1);
    EXPECT_EQ(Count("Record") + Count("Wait") + CountMarks(), 0);
  }
  EXPECT_EQ(task_runs_, 2);
  EXPECT_TRUE(device().status().ok()) << device().status();
}

TEST_P(RecordingTest, MarksAreReplayed) {
  const auto recording = device().Record(*compute_, [this] { Enqueue(); });
  ASSERT_TRUE(recording.ok()) << recording.status();
  EXPECT_EQ(gather_->in_flight().sequence, 0u);
  EXPECT_EQ(compute_->waited_ns(), 0);
  int64_t waited = 0;
  for (uint64_t run = 1; run <= 3; ++run) {
    inside_ = {};
    (*recording)->Start();
    Synchronize();
    EXPECT_EQ(inside_.info, &gather_info_);
    EXPECT_EQ(inside_.sequence, run);
    EXPECT_TRUE(inside_.running);
    EXPECT_FALSE(gather_->in_flight().running);
    EXPECT_GT(compute_->waited_ns(), waited);
    waited = compute_->waited_ns();
  }
}

TEST_P(RecordingTest, TasksAreCountedOnFromWhatRanBefore) {
  const auto one = device().Record(*compute_, [this] { Enqueue(); });
  const auto two = device().Record(*compute_, [this] {
    compute_->Enqueue(begin_);
    gather_->Enqueue(middle_);
    gather_->Enqueue(middle_);
    compute_->Enqueue(end_);
  });
  ASSERT_TRUE(one.ok() && two.ok());
  uint64_t tasks = 0;
  const auto expect = [&](uint64_t more) {
    Synchronize();
    tasks += more;
    EXPECT_EQ(inside_.sequence, tasks);
    EXPECT_EQ(gather_->in_flight().sequence, tasks);
    EXPECT_FALSE(gather_->in_flight().running);
  };
  Enqueue();
  expect(1);
  for (int round = 0; round < 2; ++round) {
    (*one)->Start();
    expect(1);
    (*two)->Start();
    expect(2);
    (*two)->Start();
    (*one)->Start();
    expect(3);
    Enqueue();
    Enqueue();
    expect(2);
  }
}

TEST_P(RecordingTest, MarksTakeNothingOfTheDeviceWhereTheDriverStores) {
  const bool stores = std::get<1>(GetParam());
  device();
  const auto recording = device().Record(*compute_, [this] { Enqueue(); });
  ASSERT_TRUE(recording.ok()) << recording.status();
  EXPECT_EQ(CountMarks(), stores ? 0 : 4);
  EXPECT_EQ(Count("Store"), stores ? 2 : 0);
  EXPECT_EQ(Count("Stamp"), stores ? 2 : 0);
}

TEST_P(RecordingTest, ATaskThatFailsEndsTheCapture) {
  task_status_ = absl::UnavailableError("rank 1 was lost");
  EXPECT_EQ(device().Record(*compute_, [this] { Enqueue(); }).status(),
            absl::UnavailableError("rank 1 was lost"));
  EXPECT_EQ(device().status(), absl::UnavailableError("rank 1 was lost"));
  EXPECT_EQ(Count("EndCapture"), 1);
  EXPECT_EQ(device().Record(*compute_, [this] { Enqueue(); }).status(),
            absl::UnavailableError("rank 1 was lost"));
  EXPECT_EQ(Count("BeginCapture"), 1) << "nothing is recorded after a failure";
  EXPECT_TRUE(order_.empty());
}

TEST_P(RecordingTest, AnObservedStreamIsNotRecorded) {
  class Nobody final : public StreamObserver {
    void OnCommand(const CommandInfo&, int64_t, int64_t) override {}
  } nobody;
  gather_->Observe(&nobody);
  EXPECT_EQ(device().Record(*compute_, [this] { Enqueue(); }).status(),
            absl::InternalError("stream gather is observed and cannot be recorded"));
}

TEST_P(RecordingTest, NothingStartsAfterAFailure) {
  const auto recording = device().Record(*compute_, [this] { Enqueue(); });
  ASSERT_TRUE(recording.ok()) << recording.status();
  device().Cancel(absl::CancelledError("enough"));
  (*recording)->Start();
  Synchronize();
  EXPECT_TRUE(order_.empty());
  EXPECT_EQ(Count("LaunchGraph"), 0);
}

TEST_P(RecordingTest, AGraphIsDestroyedWithItsRecording) {
  {
    ASSERT_TRUE(device().Record(*compute_, [this] { Enqueue(); }).ok());
  }
  EXPECT_EQ(Count("DestroyGraph"), 1);
}

INSTANTIATE_TEST_SUITE_P(Schedules, RecordingTest,
                         ::testing::Combine(::testing::Values(emulation::Schedule::kAtOnce,
                                                              emulation::Schedule::kLate),
                                            ::testing::Bool()));

// By what of the driver refuses.
class RefusedMarksTest : public CudaDeviceTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(RefusedMarksTest, AreKernels) {
  driver_->failures[GetParam()] = absl::InternalError("not here");
  device();
  driver_->failures.clear();
  const auto stream = NewStream("gather");
  FunctionTask task([] { return absl::OkStatus(); });
  const std::vector<Command> commands = {Command::Call(&task, &info_)};
  stream->Enqueue(commands);
  stream->Synchronize();
  EXPECT_EQ(CountMarks(), 2);
  EXPECT_EQ(Count("Store"), 0);
  EXPECT_EQ(stream->in_flight().sequence, 1u);
  EXPECT_EQ(device().notes().size(), 1u);
  EXPECT_TRUE(device().status().ok()) << device().status();
}

INSTANTIATE_TEST_SUITE_P(Calls, RefusedMarksTest, ::testing::Values("Store", "Stamp", "Elapsed"));

}  // namespace
}  // namespace ft::cuda
