// The emulated driver: order of streams and events under both schedules, CUDA's rules of capture, memory.
#include "test/doubles/cuda/emulated_driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "runtime/backends/cuda/platform.h"

namespace ft::cuda::emulation {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

#define ASSERT_OK(expr) ASSERT_EQ((expr), absl::OkStatus())

void ExpectFails(const absl::Status& status, const std::string& words) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr(words));
}

class EmulatedDriverTest : public testing::TestWithParam<Schedule> {
 protected:
  EmulatedDriverTest() : driver_(EmulatedMachine{.schedule = GetParam()}) {
    EXPECT_TRUE(driver_.SetDevice(0).ok());
    for (StreamHandle& stream : streams_) stream = *driver_.CreateStream(false);
    for (EventHandle& event : events_) event = *driver_.CreateEvent(true);
    driver_.ClearLog();
  }

  // Work that writes down that it ran.
  void Push(int stream, int number) {
    EXPECT_EQ(EnqueueHost(streams_[stream], "work",
                          [this, number] {
                            ran_.push_back(number);
                            return kSuccess;
                          }),
              kSuccess);
  }
  absl::Status Record(int event, int stream) { return driver_.Record(events_[event], streams_[stream]); }
  absl::Status Wait(int event, int stream) { return driver_.Wait(events_[event], streams_[stream]); }
  std::vector<std::string> Log() {
    std::vector<std::string> lines;
    for (const Call& call : driver_.Log()) lines.push_back(call.ToString());
    return lines;
  }

  EmulatedDriver driver_;
  StreamHandle streams_[3];
  EventHandle events_[4];
  std::vector<int> ran_;
};

INSTANTIATE_TEST_SUITE_P(Schedules, EmulatedDriverTest, testing::Values(Schedule::kAtOnce, Schedule::kLate),
                         [](const auto& info) {
                           return info.param == Schedule::kAtOnce ? "AtOnce" : "Late";
                         });

TEST_P(EmulatedDriverTest, StreamsRunInOrderAndWaitForEvents) {
  Push(0, 1);
  ASSERT_OK(Record(0, 0));
  Push(0, 2);
  ASSERT_OK(Wait(0, 1));
  Push(1, 3);
  ASSERT_OK(driver_.Synchronize(streams_[1]));
  if (GetParam() == Schedule::kAtOnce) {
    EXPECT_THAT(ran_, ElementsAre(1, 2, 3));
  } else {
    EXPECT_THAT(ran_, ElementsAre(1, 3));  // nobody has waited for 2
  }
  EXPECT_THAT(Log(),
              ElementsAre("work s0", "Record s0 e0", "work s0", "Wait s1 e0", "work s1", "Synchronize s1"));
  ASSERT_OK(driver_.Synchronize(streams_[0]));
  EXPECT_EQ(ran_.size(), 3);
}

TEST_P(EmulatedDriverTest, MissingWaitShowsWhenLate) {
  Push(0, 1);
  Push(1, 2);  // should have waited for 1
  ASSERT_OK(driver_.Synchronize(streams_[1]));
  ASSERT_OK(driver_.Synchronize(streams_[0]));
  EXPECT_EQ(ran_, GetParam() == Schedule::kAtOnce ? std::vector<int>({1, 2}) : std::vector<int>({2, 1}));
}

TEST_P(EmulatedDriverTest, WaitIsForTheRecordBeforeIt) {
  ASSERT_OK(Wait(0, 1));  // never recorded: nothing to wait for
  Push(0, 1);
  ASSERT_OK(Record(0, 0));
  ASSERT_OK(Wait(0, 1));
  Push(0, 2);
  ASSERT_OK(Record(0, 0));
  Push(1, 3);
  ASSERT_OK(driver_.Synchronize(streams_[1]));
  EXPECT_EQ(ran_.front(), 1);
  EXPECT_EQ(ran_.back(), 3);
  EXPECT_EQ(ran_.size(), GetParam() == Schedule::kAtOnce ? 3 : 2);
}

TEST_P(EmulatedDriverTest, EventsHappenAndHaveTimes) {
  bool done = false;
  ASSERT_OK(Record(0, 0));
  Push(0, 1);
  ASSERT_OK(Record(1, 0));
  ASSERT_OK(driver_.Query(events_[1], done));
  EXPECT_EQ(done, GetParam() == Schedule::kAtOnce);
  ASSERT_OK(driver_.Query(events_[1], done));
  EXPECT_TRUE(done);
  EXPECT_GE(*driver_.Elapsed(events_[0], events_[1]), 0);
  ExpectFails(driver_.Elapsed(events_[0], events_[2]).status(), "was not recorded");
  const EventHandle untimed = *driver_.CreateEvent(false);
  ASSERT_OK(driver_.Record(untimed, streams_[0]));
  ExpectFails(driver_.Elapsed(events_[0], untimed).status(), "no timing");
}

TEST_P(EmulatedDriverTest, GraphRunsWhatWasCapturedEachTime) {
  ASSERT_OK(driver_.BeginCapture(streams_[0]));
  Push(0, 1);
  ASSERT_OK(Record(0, 0));
  ASSERT_OK(Wait(0, 1));
  Push(1, 2);
  Push(0, 3);
  ASSERT_OK(Record(1, 1));
  ASSERT_OK(Wait(1, 0));
  Push(0, 4);
  const absl::StatusOr<GraphHandle> graph = driver_.EndCapture(streams_[0]);
  ASSERT_OK(graph.status());
  EXPECT_TRUE(ran_.empty());
  EXPECT_THAT(Log(), ElementsAre("BeginCapture s0 captured", "work s0 captured", "Record s0 e0 captured",
                                 "Wait s1 e0 captured", "work s1 captured", "work s0 captured",
                                 "Record s1 e1 captured", "Wait s0 e1 captured", "work s0 captured",
                                 "EndCapture s0"));
  for (int replay = 0; replay < 2; ++replay) {
    ran_.clear();
    ASSERT_OK(driver_.LaunchGraph(*graph, streams_[2]));
    ASSERT_OK(driver_.Synchronize(streams_[2]));
    if (GetParam() == Schedule::kAtOnce) {
      EXPECT_THAT(ran_, ElementsAre(1, 2, 3, 4));
    } else {
      EXPECT_THAT(ran_, ElementsAre(1, 3, 2, 4));
    }
  }
  Push(1, 5);  // has left the capture
  ASSERT_OK(driver_.Synchronize(streams_[1]));
  EXPECT_EQ(ran_.back(), 5);
  ExpectFails(Wait(0, 1), "capture that has ended");
  ASSERT_OK(driver_.DestroyGraph(*graph));
  ExpectFails(driver_.LaunchGraph(*graph, streams_[0]), "destroyed");
}

TEST_P(EmulatedDriverTest, StreamsMustJoinTheirOriginAgain) {
  ASSERT_OK(driver_.BeginCapture(streams_[0]));
  ASSERT_OK(Record(0, 0));
  ASSERT_OK(Wait(0, 1));
  Push(1, 1);
  ASSERT_OK(Record(1, 1));
  Push(1, 2);
  ASSERT_OK(Wait(1, 0));  // before 2
  ExpectFails(driver_.EndCapture(streams_[0]).status(), "stream 1 has work that stream 0 has not waited for");
  // The streams are free again.
  Push(0, 3);
  ASSERT_OK(driver_.Synchronize(streams_[0]));
  EXPECT_THAT(ran_, ElementsAre(3));
}

TEST_P(EmulatedDriverTest, CaptureIsIsolated) {
  ASSERT_OK(Record(3, 2));
  ASSERT_OK(driver_.BeginCapture(streams_[0]));
  ExpectFails(Wait(3, 0), "was not recorded in this capture");
  ExpectFails(driver_.EndCapture(streams_[0]).status(), "invalid");

  ASSERT_OK(driver_.BeginCapture(streams_[0]));
  ExpectFails(Wait(2, 0), "was not recorded in this capture");
  ExpectFails(driver_.EndCapture(streams_[0]).status(), "invalid");

  ASSERT_OK(driver_.BeginCapture(streams_[0]));
  EXPECT_NE(EnqueueHost(streams_[1], "work", [] { return kSuccess; }), kSuccess);
  EXPECT_THAT(LastMessage(), HasSubstr("stream 1 has not joined"));
  ExpectFails(driver_.EndCapture(streams_[0]).status(), "without having joined");
}

TEST_P(EmulatedDriverTest, WhatWaitsBreaksACapture) {
  void* data = *driver_.Malloc(64);
  bool done;
  const std::vector<std::function<absl::Status()>> calls = {
      [&] { return driver_.Malloc(64).status(); },
      [&] { return driver_.MallocHost(64).status(); },
      [&] { return driver_.Free(data); },
      [&] { return driver_.Zero(data, 64); },
      [&] { return driver_.Copy(data, "text", 4); },
      [&] { return driver_.Synchronize(streams_[0]); },
  };
  for (const auto& call : calls) {
    ASSERT_OK(driver_.BeginCapture(streams_[0]));
    ExpectFails(call(), "captur");
    ExpectFails(driver_.EndCapture(streams_[0]).status(), "invalid");
  }
  ASSERT_OK(driver_.BeginCapture(streams_[0]));
  ASSERT_OK(Record(0, 0));
  ExpectFails(driver_.Query(events_[0], done), "in a capture");
  ExpectFails(driver_.BeginCapture(streams_[1]), "in progress");
  ExpectFails(driver_.EndCapture(streams_[1]).status(), "no capture began on stream 1");
  std::thread([&] {
    ASSERT_OK(driver_.SetDevice(0));
    ExpectFails(driver_.EndCapture(streams_[0]).status(), "another thread");
    ExpectFails(Record(1, 0), "by another thread");
    EXPECT_TRUE(driver_.Malloc(64).ok());  // only the thread that captures may not
  }).join();
  ASSERT_OK(driver_.EndCapture(streams_[0]).status());
}

TEST_P(EmulatedDriverTest, HandlesEndWithWhatTheyNamed) {
  ASSERT_OK(driver_.DestroyStream(streams_[0]));
  ASSERT_OK(driver_.DestroyEvent(events_[0]));
  EXPECT_NE(EnqueueHost(streams_[0], "work", [] { return kSuccess; }), kSuccess);
  EXPECT_THAT(LastMessage(), HasSubstr("stream 0 was destroyed"));
  ExpectFails(driver_.Synchronize(streams_[0]), "stream 0 was destroyed");
  ExpectFails(Record(0, 1), "event 0 was destroyed");
  ExpectFails(Wait(0, 1), "event 0 was destroyed");
  ExpectFails(driver_.DestroyEvent(events_[0]), "event 0 was destroyed");
  EmulatedDriver other;
  ASSERT_OK(other.SetDevice(0));
  ExpectFails(other.Synchronize(streams_[1]), "no stream of this device");
}

TEST_P(EmulatedDriverTest, CopiesStayInsideAllocations) {
  auto* device = static_cast<char*>(*driver_.Malloc(100));
  auto* pinned = static_cast<char*>(*driver_.MallocHost(100));
  char host[100] = "text";
  EXPECT_EQ(static_cast<unsigned char>(device[99]), 0xCD);
  ASSERT_OK(driver_.Copy(device, host, 100));
  ASSERT_OK(driver_.CopyAsync(pinned, device, 100, streams_[0]));
  ASSERT_OK(driver_.Synchronize(streams_[0]));
  EXPECT_STREQ(pinned, "text");
  ASSERT_OK(driver_.Zero(device + 1, 99));
  ExpectFails(driver_.Zero(device + 1, 100), "reach behind the 100 bytes");
  ExpectFails(driver_.Copy(device + 50, host, 51), "reach behind");
  ExpectFails(driver_.Copy(host, host + 50, 50), "neither end");
  ExpectFails(driver_.CopyAsync(device, host, 100, streams_[0]), "page-locked");
  ExpectFails(driver_.FreeHost(device), "not allocated so");
  ASSERT_OK(driver_.Free(device));
  ExpectFails(driver_.Free(device), "free already");
  ASSERT_OK(driver_.FreeHost(pinned));
  ASSERT_OK(driver_.LockHost(host, 100));
  ExpectFails(driver_.LockHost(host, 100), "locked already");
  auto* again = static_cast<char*>(*driver_.Malloc(100));
  ASSERT_OK(driver_.CopyAsync(again, host, 100, streams_[0]));
  ExpectFails(driver_.FreeHost(host), "not allocated so");
  ASSERT_OK(driver_.UnlockHost(host));
  ExpectFails(driver_.UnlockHost(host), "is not locked");
  ExpectFails(driver_.CopyAsync(again, host, 100, streams_[0]), "page-locked");
  ASSERT_OK(driver_.Free(again));
}

TEST_P(EmulatedDriverTest, FailedWorkLosesTheDevice) {
  EnqueueHost(streams_[0], "bad", [] { return Fail(kLaunchFailure, "it broke"); });
  const absl::Status status = driver_.Synchronize(streams_[0]);
  ExpectFails(status, "it broke");
  ExpectFails(driver_.Malloc(64).status(), "the device was lost: it broke");
}

TEST(EmulatedMachine, IsWhatTestsSay) {
  EmulatedMachine machine;
  machine.properties.total_bytes = 1000;
  machine.others_bytes = 300;
  machine.pinnable_bytes = 50;
  EmulatedDriver driver(machine);
  ExpectFails(driver.Malloc(1).status(), "has not called SetDevice");
  ExpectFails(driver.SetDevice(1), "there is no device 1");
  ASSERT_OK(driver.SetDevice(0));
  void* data = *driver.Malloc(600);
  EXPECT_EQ(driver.MemoryInfo()->free, 100);
  EXPECT_EQ(driver.Malloc(101).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(driver.MallocHost(51).status().code(), absl::StatusCode::kResourceExhausted);
  ASSERT_OK(driver.Free(data));
  EXPECT_TRUE(driver.Malloc(700).ok());
}

TEST(EmulatedPlatform, OpensOnTheMachine) {
  EmulatedMachine& machine = Machine();
  machine = {};
  ASSERT_OK(OpenPlatform(0, {}).status());
  EXPECT_EQ(OpenPlatform(0, {})->attention, nullptr);
  machine.no_driver = "no CUDA driver was found";
  EXPECT_EQ(OpenPlatform(0, {}).status(), absl::FailedPreconditionError("no CUDA driver was found"));
  machine = {.devices = 0};
  EXPECT_EQ(OpenPlatform(0, {}).status().code(), absl::StatusCode::kFailedPrecondition);
  machine = {.devices = 2};
  EXPECT_EQ(OpenPlatform(1, {})->device, 1);
  machine.properties.major = 7;
  EXPECT_THAT(std::string(OpenPlatform(0, {}).status().message()), HasSubstr("too old"));
  machine = {};
}

}  // namespace
}  // namespace ft::cuda::emulation
