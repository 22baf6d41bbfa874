#include "runtime/backends/cpu/device/cpu_device.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace ft {
namespace {

class Task final : public HostTask {
 public:
  explicit Task(std::function<absl::Status()> run) : run_(std::move(run)) {}
  absl::Status Run() override { return run_(); }

 private:
  std::function<absl::Status()> run_;
};

class CpuDeviceTest : public ::testing::Test {
 protected:
  std::unique_ptr<Stream> NewStream(const std::string& name) { return *device_.CreateStream(name, 4); }

  KernelRegistry kernels_;
  CpuDevice device_{kernels_, {.num_threads = 2, .may_spin = false}};
  const CommandInfo info_;
};

TEST_F(CpuDeviceTest, ArenaIsZeroAlignedAndAsLongAsAsked) {
  for (const uint64_t bytes : {uint64_t{1}, uint64_t{4096}, uint64_t{10'000'001}}) {
    auto memory = device_.Allocate(bytes);
    ASSERT_TRUE(memory.ok()) << memory.status();
    EXPECT_EQ((*memory)->bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>((*memory)->data()) % (2 << 20), 0u);
    const char* data = static_cast<const char*>((*memory)->data());
    for (uint64_t i = 0; i < bytes; i += 997) ASSERT_EQ(data[i], 0);
    ASSERT_EQ(data[bytes - 1], 0);
  }
}

TEST_F(CpuDeviceTest, TooLargeAnArenaIsRefusedWithNumbers) {
  const absl::Status status = device_.Allocate(uint64_t{1} << 60).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(std::string(status.message()).find("1152921504606846976 bytes"), std::string::npos) << status;
  EXPECT_NE(std::string(status.message()).find("are available"), std::string::npos) << status;
}

TEST_F(CpuDeviceTest, EventsOrderStreamsRunAfterRun) {
  std::unique_ptr<Stream> a = NewStream("a"), b = NewStream("b");
  std::unique_ptr<Event> forth = device_.CreateEvent(), back = device_.CreateEvent();
  std::vector<int> order;  // written by one thread at a time if events work
  Task one([&] { return order.push_back(1), absl::OkStatus(); });
  Task two([&] { return order.push_back(2), absl::OkStatus(); });
  Task three([&] { return order.push_back(3), absl::OkStatus(); });
  const std::vector<Command> first = {Command::Call(&one, &info_), Command::Record(forth.get())};
  const std::vector<Command> second = {Command::Wait(forth.get(), &info_), Command::Call(&two, &info_),
                                       Command::Record(back.get())};
  const std::vector<Command> third = {Command::Wait(back.get(), &info_), Command::Call(&three, &info_)};
  for (int run = 0; run < 2000; ++run) {
    order.clear();
    forth->Reset();
    back->Reset();
    a->Enqueue(first);
    b->Enqueue(second);
    a->Enqueue(third);
    a->Synchronize();
    b->Synchronize();
    ASSERT_EQ(order, (std::vector<int>{1, 2, 3}));
  }
}

TEST_F(CpuDeviceTest, AFullQueueWaits) {
  std::unique_ptr<Stream> stream = NewStream("full");
  int count = 0;
  Task add([&] { return ++count, absl::OkStatus(); });
  const std::vector<Command> commands = {Command::Call(&add, &info_)};
  for (int i = 0; i < 1000; ++i) stream->Enqueue(commands);
  stream->Synchronize();
  EXPECT_EQ(count, 1000);
}

TEST_F(CpuDeviceTest, AfterAFailureAllStreamsSkipButNobodyHangs) {
  std::unique_ptr<Stream> a = NewStream("a"), b = NewStream("b");
  std::unique_ptr<Event> event = device_.CreateEvent();
  bool ran = false;
  Task fail([] { return absl::UnavailableError("rank 1 was lost"); });
  Task never([&] { return ran = true, absl::OkStatus(); });
  const std::vector<Command> first = {Command::Call(&fail, &info_), Command::Call(&never, &info_),
                                      Command::Record(event.get())};
  const std::vector<Command> second = {Command::Wait(event.get(), &info_), Command::Call(&never, &info_)};
  a->Enqueue(first);
  b->Enqueue(second);
  a->Synchronize();
  b->Synchronize();
  EXPECT_FALSE(ran);
  EXPECT_EQ(device_.status(), absl::UnavailableError("rank 1 was lost"));
  device_.Cancel(absl::InternalError("later"));
  EXPECT_EQ(device_.status(), absl::UnavailableError("rank 1 was lost"));  // the first stays
}

TEST_F(CpuDeviceTest, CopiesMoveAllRegionsInOrderOfTheStream) {
  const std::unique_ptr<Memory> here = *device_.Allocate(1000), there = *device_.AllocateHost(1000);
  char* const a = static_cast<char*>(here->data());
  char* const b = static_cast<char*>(there->data());
  for (int i = 0; i < 1000; ++i) a[i] = static_cast<char>(i % 100);
  const std::vector<CopyRegion> out = {{a, b + 500, 100}, {a + 7, b, 33}}, back = {{b, a + 900, 33}};
  const std::vector<Command> commands = {Command::Copy(&out, &info_), Command::Copy(&back, &info_)};
  std::unique_ptr<Stream> stream = NewStream("copies");
  stream->Enqueue(commands);
  stream->Synchronize();
  for (int i = 0; i < 100; ++i) ASSERT_EQ(b[500 + i], i);
  for (int i = 0; i < 33; ++i) ASSERT_EQ(a[900 + i], 7 + i);
  EXPECT_EQ(b[33], 0);
  EXPECT_EQ(b[600], 0);
  device_.Cancel(absl::InternalError("enough"));
  b[0] = 99;
  stream->Enqueue(commands);
  stream->Synchronize();
  EXPECT_EQ(b[0], 99) << "skipped after a failure";
}

class CountingObserver final : public StreamObserver {
 public:
  void OnCommand(const CommandInfo& info, int64_t begin_ns, int64_t end_ns) override {
    ++commands;
    title = info.title;
    longest = std::max(longest, end_ns - begin_ns);
  }
  int commands = 0;
  std::string title;
  int64_t longest = 0;
};

TEST_F(CpuDeviceTest, ObserversSeeTimes) {
  std::unique_ptr<Stream> stream = NewStream("observed");
  Task sleep([] { return std::this_thread::sleep_for(std::chrono::milliseconds(5)), absl::OkStatus(); });
  CommandInfo info;
  info.title = "sleep";
  const std::vector<Command> commands = {Command::Call(&sleep, &info)};
  CountingObserver observer;
  stream->Observe(&observer);
  stream->Enqueue(commands);
  stream->Synchronize();
  stream->Observe(nullptr);
  stream->Enqueue(commands);
  stream->Synchronize();
  EXPECT_EQ(observer.commands, 1);
  EXPECT_EQ(observer.title, "sleep");
  EXPECT_GE(observer.longest, 5'000'000);
}

TEST(WaitableCounterTest, WakesEveryWaiter) {
  WaitableCounter counter;
  std::atomic<int> awake = 0;
  std::vector<std::thread> waiters;
  for (int i = 0; i < 4; ++i) {
    waiters.emplace_back([&counter, &awake, i] {
      for (uint32_t target = 1; target <= 2000; ++target) counter.WaitFor(target, i % 2 == 0 ? 0 : 1000);
      ++awake;
    });
  }
  for (int i = 0; i < 2000; ++i) counter.Increment();
  for (std::thread& waiter : waiters) waiter.join();
  EXPECT_EQ(awake, 4);
  EXPECT_TRUE(counter.Reached(2000));
  EXPECT_FALSE(counter.Reached(2001));
  EXPECT_TRUE(counter.Reached(2000u - (1u << 30)));  // long passed, seen over the wrap of 32 bits
}

}  // namespace
}  // namespace ft
