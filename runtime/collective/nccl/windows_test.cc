// Windows on memory of fake GPUs, which the double of NCCL refuses where the library's would be undefined.
#include "runtime/collective/nccl/windows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/base/first_failure.h"
#include "runtime/collective/testing/test_world.h"
#include "test/doubles/nccl/gpu_ranks.h"

namespace ft::nccl {
namespace {

using testing::FakeGpus;
using testing::OnGpus;
using testing::StreamRank;
using testing::TestWorld;

constexpr int kWithDefect = 22809, kNew = 23102;
constexpr uint64_t kPage = uint64_t{2} << 20;

TEST(WindowsWorkTest, FromTheVersionOnThatDoesNotHang) {
  EXPECT_FALSE(WindowsWork(kNew, 1)) << "there is nobody to share with";
  EXPECT_FALSE(WindowsWork(23007, 2));
  EXPECT_TRUE(WindowsWork(kNew, 2));
  EXPECT_TRUE(WindowsWork(kWithDefect, 3));
  EXPECT_FALSE(WindowsWork(22706, 8)) << "it has no copy engines";
  EXPECT_FALSE(WindowsWork(0, 8)) << "the version is not known";
}

// What a rank tells of its GPU.
RendezvousOptions OnGpuOf(int rank, uint64_t page = kPage) {
  RendezvousOptions options = TestWorld::Options();
  options.gpu = absl::StrCat("0000:0", rank, ":00.0");
  options.gpu_page_bytes = page;
  return options;
}

// Ranks that have met, with a communicator for gathers and one for sums.
template <typename Body>
void RunRanks(
    int ranks, FakeGpus& gpus, const Body& body,
    const std::function<RendezvousOptions(int)>& options_of = [](int r) { return OnGpuOf(r); },
    absl::Duration patience = absl::Seconds(30)) {
  const TestWorld world(ranks);
  world.EachRank([&](int rank) {
    RendezvousOptions options = options_of(rank);
    options.timeout = patience;
    auto rendezvous = Rendezvous::Join(world.EnvironmentOf(rank), options);
    ASSERT_TRUE(rendezvous.ok()) << rendezvous.status();
    std::vector<int> all;
    for (int r = 0; r < ranks; ++r) all.push_back(r);
    const std::vector<CommunicatorGroup> groups = {{.ranks = all, .gathers = true}, {.ranks = all}};
    auto made = CreateCommunicators(**rendezvous, groups, OnGpus(gpus, false));
    ASSERT_TRUE(made.ok()) << made.status();
    StreamRank one(*std::move(made));
    body(one);
  });
}

// Waits until so many have come.
void Gather(std::atomic<int>& come, int all) {
  ++come;
  for (int i = 0; i < 30000 && come < all; ++i) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_GE(come, all);
}

std::vector<bool> HaveWindows(FakeGpus& gpus, int ranks,
                              const std::function<RendezvousOptions(int)>& options_of) {
  std::vector<bool> have(static_cast<size_t>(ranks));
  RunRanks(
      ranks, gpus,
      [&](StreamRank& rank) {
        const bool gathers = rank.communicators[0]->has_windows();
        EXPECT_EQ(gathers, rank.communicators[1]->has_windows());
        static std::mutex mutex;
        const std::lock_guard<std::mutex> lock(mutex);
        have[static_cast<size_t>(rank.comm().rank())] = gathers;
      },
      options_of);
  return have;
}

TEST(WindowsTest, AreForRanksThatCanMapEachOthersMemory) {
  const std::vector<bool> all(3, true), none(3, false);
  FakeGpus gpus(kWithDefect), older(22706);
  EXPECT_EQ(HaveWindows(gpus, 3, [](int rank) { return OnGpuOf(rank); }), all);
  using Policies = std::vector<CtaPolicy>;
  Policies policies = gpus.policies();
  std::sort(policies.begin(), policies.end());
  EXPECT_EQ(policies, Policies({CtaPolicy::kEfficiency, CtaPolicy::kEfficiency, CtaPolicy::kEfficiency,
                                CtaPolicy::kZero, CtaPolicy::kZero, CtaPolicy::kZero}));
  EXPECT_EQ(HaveWindows(older, 3, [](int rank) { return OnGpuOf(rank); }), none);
  EXPECT_EQ(older.policies(), Policies(6, CtaPolicy::kLibrarys));
  EXPECT_EQ(HaveWindows(gpus, 3, [](int rank) { return OnGpuOf(rank, rank == 1 ? 0 : kPage); }), none);
  EXPECT_EQ(HaveWindows(gpus, 3, [](int rank) { return OnGpuOf(rank, rank == 1 ? kPage / 2 : kPage); }),
            none);
  EXPECT_EQ(HaveWindows(gpus, 3, [](int rank) { return OnGpuOf(rank % 2); }), none) << "two share a GPU";
  EXPECT_EQ(HaveWindows(gpus, 3, [](int) { return TestWorld::Options(); }), none) << "nothing is known";
}

TEST(WindowsTest, CollectivesWorkInThemAndBesideThem) {
  for (const auto& [version, ranks] : {std::pair{kWithDefect, 4}, {kNew, 2}}) {
    FakeGpus gpus(version);
    std::atomic<int> registered = 0;
    RunRanks(ranks, gpus, [&, n = static_cast<size_t>(ranks)](StreamRank& rank) {
      // Slices of a gather, then the whole of a sum and a slice of it.
      constexpr size_t kCount = 1000;
      std::vector<float> arena(kCount * (2 * n + 1)), beside(kCount);
      for (auto& comm : rank.communicators)
        ASSERT_TRUE(comm->RegisterBuffer(arena.data(), arena.size() * 4).ok());
      Gather(registered, static_cast<int>(n));
      EXPECT_EQ(gpus.windows(), 2 * static_cast<int>(n));
      Communicator &gathers = *rank.communicators[0], &sums = *rank.communicators[1];
      const auto own = static_cast<size_t>(gathers.rank());
      float* const summands = arena.data() + kCount * n;
      std::fill_n(arena.data() + kCount * own, kCount, static_cast<float>(own + 1));
      std::fill_n(summands, kCount * n, static_cast<float>(own + 1));
      std::fill_n(beside.data(), kCount, 1.0f);
      ASSERT_TRUE(
          gathers.AllGather(arena.data() + kCount * own, arena.data(), kCount * 4, {"gather", 1}).ok());
      const ReducePart part{summands, summands + kCount * n, kCount, DType::kF32};
      ASSERT_TRUE(sums.ReduceScatter(absl::MakeConstSpan(&part, 1), {"scatter", 2}).ok());
      ASSERT_TRUE(sums.AllReduce(beside.data(), kCount, DType::kF32, {"all", 3}).ok());
      ASSERT_EQ(rank.stream.Finish(), 0);
      for (size_t i = 0; i < kCount * n; ++i) ASSERT_EQ(arena[i], static_cast<float>(i / kCount + 1));
      ASSERT_EQ(summands[kCount * n], static_cast<float>(n * (n + 1) / 2));
      ASSERT_EQ(beside[7], static_cast<float>(n));
      Gather(registered, 2 * static_cast<int>(n));  // nobody detaches before all have counted
      for (auto& comm : rank.communicators) comm->Detach();
    });
    EXPECT_EQ(gpus.windows(), 0);
    EXPECT_EQ(gpus.registrations(), 0);
    EXPECT_EQ(gpus.communicators(), 0);
    EXPECT_EQ(gpus.aborts(), 0);
  }
}

TEST(WindowsTest, WhereNcclMakesNoneTheMemoryIsRegistered) {
  FakeGpus gpus(kWithDefect, /*declines=*/true);
  std::atomic<int> registered = 0;
  RunRanks(3, gpus, [&](StreamRank& rank) {
    std::vector<float> arena(100);
    ASSERT_TRUE(rank.comm().RegisterBuffer(arena.data(), 400).ok());
    Gather(registered, 3);
    EXPECT_EQ(gpus.registrations(), 3);
    EXPECT_EQ(gpus.windows(), 0);
    Gather(registered, 6);
    rank.comm().Detach();
  });
  EXPECT_EQ(gpus.registrations(), 0);
}

TEST(WindowsTest, OneSidedOnesAreRefused) {
  for (const int version : {kWithDefect, 23007}) {
    FakeGpus gpus(version);
    RunRanks(3, gpus, [](StreamRank& rank) {
      std::vector<float> arena(100), beside(300);
      ASSERT_TRUE(rank.comm().RegisterBuffer(arena.data(), 400).ok());
      EXPECT_TRUE(absl::IsInternal(rank.comm().AllGather(arena.data(), beside.data(), 400, {"gather", 1})));
    });
  }
}

TEST(WindowsTest, ACollectiveMayNotReachOverAnEnd) {
  FakeGpus gpus(kWithDefect);
  RunRanks(3, gpus, [](StreamRank& rank) {
    std::vector<float> memory(400);
    ASSERT_TRUE(rank.comm().RegisterBuffer(memory.data() + 100, 800).ok());
    EXPECT_TRUE(absl::IsInternal(
        rank.comm().AllGather(memory.data() + 100, memory.data() + 211, 120, {"beyond its end", 1})));
  });
}

TEST(WindowsTest, RanksThatDisagreeAreRefused) {
  for (const int version : {kWithDefect, 23007}) {
    FakeGpus lengths(version), places(version);
    RunRanks(3, lengths, [](StreamRank& rank) {
      std::vector<float> arena(101);
      const size_t bytes = rank.comm().rank() == 1 ? 404 : 400;
      const absl::Status status = rank.comm().RegisterBuffer(arena.data(), bytes);
      EXPECT_TRUE(
          absl::StrContains(status.message(), "ncclCommWindowRegister (NCCL_WIN_ENABLE=0 does without)"))
          << status;
    });
    RunRanks(3, places, [](StreamRank& rank) {
      std::vector<float> arena(100);
      ASSERT_TRUE(rank.comm().RegisterBuffer(arena.data(), 400).ok());
      float* const from = arena.data() + (rank.comm().rank() == 1 ? 1 : 0);
      FirstFailure failure;
      rank.comm().Supervise([] { return InFlight{}; },
                            [&](const absl::Status& status) { failure.Set(status).IgnoreError(); });
      absl::Status status = rank.comm().AllGather(from, from + 10, 12, {"gather", 1});
      rank.stream.Finish();
      for (int i = 0; i < 1000 && status.ok(); ++i) {
        absl::SleepFor(absl::Milliseconds(10));
        status = failure.status();
      }
      EXPECT_TRUE(absl::StrContains(status.message(), "failed: remote process exited")) << status;
      rank.comm().Detach();
    });
  }
}

TEST(WindowsTest, ARankThatDoesNotComeIsWaitedForAsLongAsForAMeeting) {
  FakeGpus gpus(kWithDefect);
  RunRanks(
      3, gpus,
      [](StreamRank& rank) {
        std::vector<float> arena(100);
        if (rank.comm().rank() == 2) return absl::SleepFor(absl::Seconds(8));
        const absl::Status status = rank.comm().RegisterBuffer(arena.data(), 400);
        EXPECT_TRUE(absl::IsUnavailable(status)) << status;
        EXPECT_TRUE(absl::StrContains(status.message(), "takes too long")) << status;
      },
      [](int rank) { return OnGpuOf(rank); }, absl::Seconds(5));
}

TEST(WindowsTest, AnAbortedWaitEndsAtOnce) {
  FakeGpus gpus(kWithDefect);
  RunRanks(3, gpus, [](StreamRank& rank) {
    std::vector<float> arena(100);
    if (rank.comm().rank() == 2) return absl::SleepFor(absl::Seconds(1));
    std::thread other([&] {
      absl::SleepFor(absl::Milliseconds(100));
      rank.comm().Abort(absl::UnavailableError("rank 2 was lost"));
    });
    EXPECT_EQ(rank.comm().RegisterBuffer(arena.data(), 400).message(), "rank 2 was lost");
    other.join();
  });
}

}  // namespace
}  // namespace ft::nccl
