#include "runtime/collective/emulated_link.h"

#include <gtest/gtest.h>
#include <time.h>

#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/backends/null/null_communicator.h"
#include "runtime/collective/create.h"
#include "runtime/collective/testing/test_world.h"

namespace ft {
namespace {

using std::chrono::duration_cast;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

constexpr int64_t kMs = 1'000'000;

int64_t CpuNsOfThread() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
}

struct Spent {
  int64_t wall_ns, cpu_ns;
};

Spent Measure(const std::function<void()>& body) {
  const auto begin = steady_clock::now();
  const int64_t cpu = CpuNsOfThread();
  body();
  return {duration_cast<nanoseconds>(steady_clock::now() - begin).count(), CpuNsOfThread() - cpu};
}

// Rank 0 of four that need no time by themselves.
std::unique_ptr<Communicator> Linked(const EmulatedLink& link) {
  return EmulateLink(std::make_unique<NullCommunicator>(0, 4), link);
}

TEST(EmulatedLinkTest, TheCostIsLatencyAndShareOfTheBytes) {
  const EmulatedLink link{.gigabits_per_s = 8, .latency_us = 10};  // a byte per nanosecond
  EXPECT_EQ(LinkNanoseconds(link, 1, 1000000, 1), 0);
  EXPECT_EQ(LinkNanoseconds(link, 2, 1000000, 1), 10'000 + 500'000);
  EXPECT_EQ(LinkNanoseconds(link, 4, 1000000, 1), 10'000 + 750'000);
  EXPECT_EQ(LinkNanoseconds(link, 4, 1000000, 2), 10'000 + 1'500'000);
  EXPECT_EQ(LinkNanoseconds(link, 4, 0, 1), 10'000);
}

TEST(EmulatedLinkTest, CollectivesTakeAtLeastTheirTimeAndNoProcessor) {
  // 1 MB whole takes 0.75 ms x 8 = 6 ms to gather or reduce over four ranks.
  const auto comm = Linked({.gigabits_per_s = 1, .latency_us = 4000});
  std::vector<float> data(250'000);
  const size_t quarter = data.size() / 4;
  const std::pair<int64_t, std::function<absl::Status()>> cases[] = {
      {10 * kMs, [&] { return comm->AllGather(data.data(), data.data(), quarter * 4, {"gather", 0}); }},
      {10 * kMs,
       [&] { return comm->ReduceScatter(data.data(), data.data(), quarter, DType::kF32, {"scatter", 0}); }},
      {16 * kMs, [&] { return comm->AllReduce(data.data(), data.size(), DType::kF32, {"reduce", 0}); }},
  };
  for (const auto& [least, call] : cases) {
    const Spent spent = Measure([&] { EXPECT_TRUE(call().ok()); });
    EXPECT_GE(spent.wall_ns, least);
    EXPECT_LT(spent.cpu_ns, least / 4);
  }
}

TEST(EmulatedLinkTest, ABucketPaysOneLatency) {
  const auto comm = Linked({.gigabits_per_s = 1000, .latency_us = 20'000});
  std::vector<float> data(64);
  const std::vector<ReducePart> parts(10, {.src = data.data(), .dst = data.data(), .count = 1});
  const Spent together = Measure([&] { EXPECT_TRUE(comm->ReduceScatter(parts, {"bucket", 0}).ok()); });
  EXPECT_GE(together.wall_ns, 20 * kMs);
  EXPECT_LT(together.wall_ns, 10 * 20 * kMs);
  const Spent apart = Measure([&] {
    for (const ReducePart& part : parts)
      EXPECT_TRUE(comm->ReduceScatter(absl::MakeConstSpan(&part, 1), {"one by one", 0}).ok());
  });
  EXPECT_GE(apart.wall_ns, 10 * 20 * kMs);
}

TEST(EmulatedLinkTest, AnAbortWakesTheSleeper) {
  const auto comm = Linked({.gigabits_per_s = 1, .latency_us = 60e6});
  std::thread waker([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    comm->Abort(absl::UnavailableError("rank 2 was lost"));
  });
  float x = 0;
  const Spent spent = Measure(
      [&] { EXPECT_EQ(comm->AllReduce(&x, 1, DType::kF32, {"long", 0}).message(), "rank 2 was lost"); });
  waker.join();
  EXPECT_LT(spent.wall_ns, 30'000 * kMs);
}

TEST(EmulatedLinkTest, EveryRankWaitsAndTheNumbersAreTheSame) {
  testing::TestWorld(3).RunThreads([](const Rendezvous& rendezvous) {
    CommunicatorOptions options;
    options.link = EmulatedLink{.gigabits_per_s = 10, .latency_us = 30'000};
    auto communicators = CreateCommunicators(rendezvous, 1, options).value();
    Communicator& comm = *communicators[0];
    EXPECT_EQ(comm.staging_bytes(), StagingBytes(CollectiveBackend::kShm, 3));
    EXPECT_EQ(comm.rank(), rendezvous.rank());
    float x = static_cast<float>(comm.rank());
    const Spent spent = Measure([&] { EXPECT_TRUE(comm.AllReduce(&x, 1, DType::kF32, {"sum", 0}).ok()); });
    EXPECT_EQ(x, 3.0f);
    EXPECT_GE(spent.wall_ns, 30 * kMs);
    EXPECT_TRUE(comm.Barrier({"end", 0}).ok());
  });
}

}  // namespace
}  // namespace ft
