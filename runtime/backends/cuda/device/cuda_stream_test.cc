#include "runtime/backends/cuda/device/cuda_stream.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "test/doubles/cuda/device_fixture.h"

namespace ft::cuda {
namespace {

TEST_F(CudaDeviceTest, StreamsOfCommunicationGoFirst) {
  const auto compute = NewStream("compute"), gather = NewStream("gather"), reduce = NewStream("reduce"),
             h2d = NewStream("h2d");
  EXPECT_EQ(Count("CreateStream high"), 2);
  EXPECT_EQ(Count("CreateStream s"), 2);
}

TEST_F(CudaDeviceTest, EventsOrderStreams) {
  const auto a = NewStream("a"), b = NewStream("b");
  const auto forth = device().CreateEvent(), back = device().CreateEvent();
  const std::vector<Command> first = {Launch(1), Command::Record(forth.get())};
  const std::vector<Command> second = {Command::Wait(forth.get(), &info_), Launch(2),
                                       Command::Record(back.get())};
  const std::vector<Command> third = {Command::Wait(back.get(), &info_), Launch(3)};
  driver_->ClearLog();
  a->Enqueue(first);
  b->Enqueue(second);
  a->Enqueue(third);
  a->Synchronize();
  b->Synchronize();
  EXPECT_TRUE(device().status().ok()) << device().status();
  EXPECT_EQ(order_, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(Log(),
            (std::vector<std::string>{"note s1", "Record s1 e2", "Wait s2 e2", "note s2", "Record s2 e3",
                                      "Wait s1 e3", "note s1", "Synchronize s1", "Synchronize s2"}));
}

class LateCudaDeviceTest : public CudaDeviceTest {
 protected:
  LateCudaDeviceTest() : CudaDeviceTest({.schedule = emulation::Schedule::kLate}) {}
};

TEST_F(LateCudaDeviceTest, TheHostAwaitsWhatComesBeforeAnEvent) {
  const auto stream = NewStream("compute");
  const auto event = device().CreateEvent();
  event->Await();  // which was not recorded
  const std::vector<Command> commands = {Launch(1), Command::Record(event.get()), Launch(2)};
  stream->Enqueue(commands);
  EXPECT_EQ(order_, (std::vector<int>{}));
  event->Await();
  EXPECT_EQ(order_, (std::vector<int>{1}));
  stream->Synchronize();
  EXPECT_EQ(order_, (std::vector<int>{1, 2}));
}

TEST_F(CudaDeviceTest, WhatFailsBeforeAnEventComesOutOfAwait) {
  const auto stream = NewStream("compute");
  const auto event = device().CreateEvent();
  const std::vector<Command> commands = {Command::Record(event.get())};
  stream->Enqueue(commands);
  driver_->failures["Await"] = absl::InternalError("cudaEventSynchronize() failed: an illegal access");
  event->Await();
  EXPECT_EQ(device().status(), absl::InternalError("cudaEventSynchronize() failed: an illegal access"));
  driver_->failures["Await"] = absl::InternalError("asked again");
  event->Await();  // returns at once
}

TEST_F(CudaDeviceTest, AStreamDoesNotWaitForItself) {
  const auto stream = NewStream("compute");
  const auto event = device().CreateEvent();
  const std::vector<Command> commands = {Command::Record(event.get()), Command::Wait(event.get(), &info_)};
  driver_->ClearLog();
  stream->Enqueue(commands);
  EXPECT_EQ(Log(), (std::vector<std::string>{"Record s1 e2"}));
}

TEST_F(CudaDeviceTest, AWaitThatComesBeforeItsRecordIsAnErrorRatherThanARace) {
  const auto stream = NewStream("compute");
  const auto event = device().CreateEvent();
  const std::vector<Command> record = {Command::Record(event.get())},
                             wait = {Command::Wait(event.get(), &info_)};
  stream->Enqueue(record);
  event->Reset();
  stream->Enqueue(wait);
  EXPECT_EQ(device().status(), absl::InternalError("note h.0: it is enqueued before what it waits for"));
}

TEST_F(CudaDeviceTest, AfterAFailedTaskAllStreamsSkip) {
  const auto a = NewStream("a"), b = NewStream("b");
  const auto event = device().CreateEvent();
  FunctionTask fail([] { return absl::UnavailableError("rank 1 was lost"); });
  const std::vector<Command> first = {Launch(1), Command::Call(&fail, &info_), Launch(2),
                                      Command::Record(event.get())};
  const std::vector<Command> second = {Command::Wait(event.get(), &info_), Launch(3)};
  a->Enqueue(first);
  b->Enqueue(second);
  a->Synchronize();
  b->Synchronize();
  EXPECT_EQ(order_, (std::vector<int>{1}));
  EXPECT_EQ(device().status(), absl::UnavailableError("rank 1 was lost"));
  device().Cancel(absl::InternalError("later"));
  EXPECT_EQ(device().status(), absl::UnavailableError("rank 1 was lost"));  // the first stays
}

TEST_F(CudaDeviceTest, AKernelThatFailsIsNamedByItsInstruction) {
  const auto stream = NewStream("compute");
  const auto kernel = *MakeKernel([](StreamHandle) { return 9; });
  const std::vector<Command> commands = {Command::Launch(kernel.get(), &info_), Launch(1)};
  stream->Enqueue(commands);
  stream->Synchronize();
  EXPECT_EQ(device().status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(device().status().message().find("note h.0 (instruction 12) failed: "), 0u) << device().status();
  EXPECT_TRUE(order_.empty());
}

TEST_F(CudaDeviceTest, WhatFailsOnTheDeviceComesOutOfSynchronize) {
  const auto stream = NewStream("compute");
  driver_->failures["Synchronize"] = absl::InternalError("cudaStreamSynchronize() failed: an illegal access");
  stream->Synchronize();
  EXPECT_EQ(device().status(),
            absl::InternalError("stream compute: cudaStreamSynchronize() failed: an illegal access"));
}

TEST_F(CudaDeviceTest, CancelSkipsWhatFollows) {
  const auto stream = NewStream("compute");
  const std::vector<Command> first = {Launch(1)}, second = {Launch(2)};
  stream->Enqueue(first);
  device().Cancel(absl::CancelledError("enough"));
  stream->Enqueue(second);
  stream->Synchronize();
  EXPECT_EQ(order_, (std::vector<int>{1}));
  EXPECT_EQ(device().status(), absl::CancelledError("enough"));
}

TEST_F(CudaDeviceTest, CopiesMoveAllRegionsInTheOrderOfTheStream) {
  const auto arena = *device().Allocate(1000), host = *device().AllocateHost(1000);
  char* const a = static_cast<char*>(arena->data());
  char* const b = static_cast<char*>(host->data());
  std::string values(1000, ' ');
  for (int i = 0; i < 1000; ++i) values[i] = static_cast<char>(i % 100);
  ASSERT_TRUE(device().Write(a, values.data(), 1000).ok());
  const std::vector<CopyRegion> out = {{a, b + 500, 100}, {a + 7, b, 33}}, in = {{b, a + 900, 33}};
  const std::vector<Command> commands = {Command::Copy(&out, &info_), Command::Copy(&in, &info_)};
  const auto stream = NewStream("d2h");
  stream->Enqueue(commands);
  stream->Synchronize();
  EXPECT_EQ(std::string(b + 500, 100), values.substr(0, 100));
  EXPECT_EQ(std::string(b, 33), values.substr(7, 33));
  EXPECT_EQ(b[33], 0);
  EXPECT_EQ(b[600], 0);
  std::string back(33, ' ');
  ASSERT_TRUE(device().Read(back.data(), a + 900, 33).ok());
  EXPECT_EQ(back, values.substr(7, 33));
  driver_->ClearLog();
  const std::vector<CopyRegion> nothing = {{a + 1000, b, 0}};  // what a rank without a slice has
  const std::vector<Command> idle = {Command::Copy(&nothing, &info_)};
  stream->Enqueue(idle);
  EXPECT_TRUE(Log().empty());
  driver_->failures["CopyAsync"] = absl::InternalError("cudaMemcpyAsync(...) failed: why");
  stream->Enqueue(commands);
  EXPECT_EQ(device().status(),
            absl::InternalError("note h.0 (instruction 12): cudaMemcpyAsync(...) failed: why"));
}

TEST_F(CudaDeviceTest, OnlyComputeMeasuresHowLongItWaitsAndOnlyForOthers) {
  const auto compute = NewStream("compute"), gather = NewStream("gather");
  const auto one = device().CreateEvent(), two = device().CreateEvent(), three = device().CreateEvent();
  const std::vector<Command> records = {Command::Record(one.get()), Command::Record(two.get())};
  const std::vector<Command> waits = {Command::Wait(one.get(), &info_), Command::Wait(two.get(), &info_)};
  const std::vector<Command> own = {Command::Record(three.get()), Command::Wait(three.get(), &info_)};
  const std::vector<Command> back = {Command::Wait(three.get(), &info_)};
  compute->Enqueue(own);
  gather->Enqueue(back);
  compute->Synchronize();
  gather->Synchronize();
  EXPECT_EQ(compute->waited_ns(), 0);
  EXPECT_EQ(gather->waited_ns(), 0);
  driver_->wait = std::chrono::milliseconds(5);
  gather->Enqueue(records);
  const auto begin = std::chrono::steady_clock::now();
  compute->Enqueue(waits);
  const int64_t all = std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
  compute->Synchronize();
  EXPECT_GE(compute->waited_ns(), 10'000'000);
  EXPECT_LE(compute->waited_ns(), all);
}

TEST_F(CudaDeviceTest, TheHostSeesWhichTaskAStreamIsIn) {
  const auto stream = NewStream("gather");
  EXPECT_EQ(stream->in_flight().info, nullptr);
  CommandInfo gather{.title = "all_gather h.1", .category = "forward"};
  InFlight inside;
  FunctionTask task([&] { return inside = stream->in_flight(), absl::OkStatus(); });
  const std::vector<Command> commands = {Command::Call(&task, &info_), Command::Call(&task, &gather)};
  stream->Enqueue(commands);
  stream->Synchronize();
  EXPECT_EQ(inside.info, &gather);
  EXPECT_EQ(inside.sequence, 2u);
  EXPECT_TRUE(inside.running);
  EXPECT_EQ(stream->in_flight().info, &gather);
  EXPECT_FALSE(stream->in_flight().running);
}

class Ranges final : public ProfilerRanges {
 public:
  explicit Ranges(std::vector<std::string>& log) : log_(log) {}
  void Push(const char* name) override { log_.push_back(name); }
  void Pop() override { log_.push_back("pop"); }

 private:
  std::vector<std::string>& log_;
};

TEST_F(CudaDeviceTest, ProfilersSeeTheNamesOfCommands) {
  std::vector<std::string> log;
  platform_.ranges = std::make_unique<Ranges>(log);
  const auto stream = NewStream("compute");
  const auto event = device().CreateEvent();
  const std::vector<Command> commands = {Launch(1), Command::Record(event.get())};
  stream->Enqueue(commands);
  EXPECT_EQ(log, (std::vector<std::string>{"note h.0", "pop"}));
}

struct Observed {
  const CommandInfo* info;
  int64_t begin_ns, end_ns;
};

class Observer final : public StreamObserver {
 public:
  void OnCommand(const CommandInfo& info, int64_t begin_ns, int64_t end_ns) override {
    seen.push_back({&info, begin_ns, end_ns});
  }
  std::vector<Observed> seen;
};

int64_t NowNs() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

TEST_F(CudaDeviceTest, ObserversAreToldOfAllStreamsByTheHostsClock) {
  const auto a = NewStream("compute"), b = NewStream("gather");
  FunctionTask sleep(
      [] { return std::this_thread::sleep_for(std::chrono::milliseconds(5)), absl::OkStatus(); });
  CommandInfo first{.title = "first", .category = ""}, second{.title = "second", .category = ""};
  const std::vector<Command> one = {Command::Call(&sleep, &first)}, two = {Command::Call(&sleep, &second)};
  Observer at_a, at_b;
  a->Observe(&at_a);
  b->Observe(&at_b);
  const int64_t begin = NowNs();
  a->Enqueue(one);
  b->Enqueue(two);
  a->Synchronize();
  b->Synchronize();
  const int64_t end = NowNs();
  ASSERT_EQ(at_a.seen.size(), 1u);
  ASSERT_EQ(at_b.seen.size(), 1u);
  EXPECT_EQ(at_a.seen[0].info, &first);
  EXPECT_EQ(at_b.seen[0].info, &second);
  EXPECT_GE(at_a.seen[0].end_ns - at_a.seen[0].begin_ns, 4'900'000);
  EXPECT_LE(at_a.seen[0].end_ns, at_b.seen[0].begin_ns);
  constexpr int64_t kClockNs = 1'000'000;  // between the event that set the clock and the host's look at it
  EXPECT_GE(at_a.seen[0].begin_ns, begin - kClockNs);
  EXPECT_LE(at_b.seen[0].end_ns, end + kClockNs);
}

TEST_F(CudaDeviceTest, ObservingCreatesEventsOnceAndEndsWithTheObserver) {
  const auto stream = NewStream("compute");
  const std::vector<Command> commands = {Launch(1), Launch(2), Launch(3)};
  Observer observer;
  for (int step = 0; step < 3; ++step) {
    driver_->ClearLog();
    stream->Observe(&observer);
    stream->Enqueue(commands);
    stream->Synchronize();
    stream->Observe(nullptr);
    EXPECT_EQ(Count("CreateEvent timing"), step == 0 ? 7 : 0);
    EXPECT_EQ(observer.seen.size(), 3u * (step + 1));
  }
  driver_->ClearLog();
  stream->Enqueue(commands);
  stream->Synchronize();
  EXPECT_EQ(observer.seen.size(), 9u);
  EXPECT_EQ(Count("Record"), 0);
  EXPECT_TRUE(device().status().ok()) << device().status();
}

TEST_F(CudaDeviceTest, AFailureIsNotObserved) {
  const auto stream = NewStream("compute");
  Observer observer;
  stream->Observe(&observer);
  FunctionTask fail([] { return absl::UnavailableError("rank 1 was lost"); });
  const std::vector<Command> commands = {Launch(1), Command::Call(&fail, &info_)};
  stream->Enqueue(commands);
  stream->Synchronize();
  EXPECT_TRUE(observer.seen.empty());
  EXPECT_EQ(device().status(), absl::UnavailableError("rank 1 was lost"));
}

TEST_F(CudaDeviceTest, WhatIsCreatedIsDestroyed) {
  {
    const auto stream = NewStream("compute");
    const auto event = device().CreateEvent();
    Observer observer;
    stream->Observe(&observer);
    const std::vector<Command> commands = {Launch(1)};
    stream->Enqueue(commands);
    stream->Synchronize();
  }
  EXPECT_EQ(Count("CreateStream"), Count("DestroyStream"));
  EXPECT_EQ(Count("CreateEvent"), Count("DestroyEvent") + 1) << "the clock's event stays with the device";
  EXPECT_EQ(Count("Malloc "), Count("Free") - Count("FreeHost"));
  EXPECT_EQ(Count("MallocHost"), Count("FreeHost"));
}

}  // namespace
}  // namespace ft::cuda
