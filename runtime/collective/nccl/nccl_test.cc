// NCCL's communicators on fake GPUs: what is theirs alone. What all backends have in common is in
// collective_test.cc and bucket_test.cc.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/base/round_float.h"
#include "runtime/collective/nccl/create_nccl.h"
#include "runtime/collective/rendezvous/prefix_store.h"
#include "runtime/collective/testing/test_world.h"
#include "runtime/collective/tree_sum.h"
#include "test/doubles/nccl/gpu_ranks.h"

namespace ft {
namespace {

using testing::FakeGpus;
using testing::OnGpus;
using testing::StreamRank;
using testing::TestWorld;
using testing::Waiting;

// Small integers: sums are exact in every type and order.
float Small(int rank, size_t i) { return static_cast<float>((static_cast<int>(i) * 7 + rank * 3) % 16 - 5); }

float SumOfSmall(int ranks, size_t i) {
  float sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum += Small(rank, i);
  return sum;
}

class FastTest : public ::testing::TestWithParam<int> {};

TEST_P(FastTest, SumsEveryType) {
  const int ranks = GetParam();
  FakeGpus gpus;
  TestWorld(ranks).RunThreads([&](const Rendezvous& rendezvous) {
    auto communicators = Waiting(CreateCommunicators(rendezvous, 1, OnGpus(gpus, false)).value());
    Communicator& comm = *communicators[0];
    const size_t n = 1000, all = n * static_cast<size_t>(ranks), own = n * static_cast<size_t>(comm.rank());
    std::vector<float> wide(all);
    std::vector<uint16_t> brain(all), half(all);
    for (size_t i = 0; i < all; ++i) {
      wide[i] = Small(comm.rank(), i);
      brain[i] = RoundToBF16(wide[i]);
      half[i] = RoundToF16(wide[i]);
    }
    std::vector<float> wide_sum(n);
    std::vector<uint16_t> brain_sum(n);
    const std::vector<ReducePart> parts = {
        {wide.data(), wide_sum.data(), n, DType::kF32},
        {brain.data(), brain_sum.data(), n, DType::kBF16},
        {half.data(), half.data() + own, n, DType::kF16},  // in place
    };
    ASSERT_TRUE(comm.ReduceScatter(parts, {"scatter", 1}).ok());
    const ReducePart whole{brain.data(), brain.data(), all - 3, DType::kBF16};
    ASSERT_TRUE(comm.AllReduce(absl::MakeConstSpan(&whole, 1), {"all", 2}).ok());
    for (size_t i = 0; i < n; ++i) {
      const float exact = SumOfSmall(ranks, own + i);
      ASSERT_EQ(wide_sum[i], exact) << i;
      ASSERT_EQ(brain_sum[i], RoundToBF16(exact)) << i << " of " << ranks;
      ASSERT_EQ(half[own + i], RoundToF16(exact)) << i << " of " << ranks;
    }
    for (size_t i = 0; i < all - 3; ++i) ASSERT_EQ(brain[i], RoundToBF16(SumOfSmall(ranks, i))) << i;
    EXPECT_EQ(comm.staging_bytes(), StagingBytes(CollectiveBackend::kNccl, ranks, false));
  });
  EXPECT_EQ(gpus.communicators(), 0);
  EXPECT_EQ(gpus.aborts(), 0) << "an orderly end aborts nothing";
}

INSTANTIATE_TEST_SUITE_P(Ranks, FastTest, ::testing::Values(2, 3, 4, 5));

float Rough(int rank, size_t i) {
  uint32_t x = static_cast<uint32_t>(i) * 2654435761u + static_cast<uint32_t>(rank) * 40503u + 77u;
  x ^= x >> 15, x *= 2246822519u, x ^= x >> 13;
  return (static_cast<float>(x & 0xFFFF) - 32768.0f) * std::ldexp(1.0f, static_cast<int>(x >> 16 & 15) - 20);
}

// Bits do not depend on how the staging memory cuts a bucket, which has more pieces than a launch takes, and
// are those of the host's sums.
TEST(DeterministicTest, ResultsDoNotDependOnTheStagingMemory) {
  constexpr int kRanks = 3;
  constexpr size_t kParts = 70;
  FakeGpus gpus;
  TestWorld(kRanks).RunThreads([&](const Rendezvous& rendezvous) {
    std::vector<std::vector<float>> sources[kRanks];
    for (int rank = 0; rank < kRanks; ++rank) {
      for (size_t p = 0; p < kParts; ++p) {
        sources[rank].emplace_back((p * 37 % 411) * kRanks);
        for (size_t i = 0; i < sources[rank][p].size(); ++i) sources[rank][p][i] = Rough(rank, i + 1000 * p);
      }
    }
    int attempt = 0;
    for (const size_t staging : {size_t{64 * kRanks}, size_t{64 * kRanks * 5 + 17}, size_t{1} << 20}) {
      PrefixStore store(rendezvous.store(), absl::StrCat("attempt/", attempt++));
      nccl::NcclOptions options{.cuda = gpus.Side(),
                                .store = &store,
                                .rank = rendezvous.rank(),
                                .members = {"rank 0", "rank 1", "rank 2"},
                                .interrupted = {},
                                .deterministic = true,
                                .staging_bytes = staging};
      auto communicators = Waiting(nccl::CreateNcclCommunicators({{{0, 1, 2}}}, options).value());
      const auto me = static_cast<size_t>(rendezvous.rank());
      std::vector<std::vector<float>> scattered, reduced = sources[me];
      std::vector<ReducePart> scatters, reductions;
      for (size_t p = 0; p < kParts; ++p) scattered.emplace_back(sources[me][p].size() / kRanks);
      for (size_t p = 0; p < kParts; ++p) {
        scatters.push_back({sources[me][p].data(), scattered[p].data(), scattered[p].size(), DType::kF32});
        reductions.push_back({reduced[p].data(), reduced[p].data(), reduced[p].size(), DType::kF32});
      }
      ASSERT_TRUE(communicators[0]->ReduceScatter(scatters, {"scatter", 1}).ok());
      ASSERT_TRUE(communicators[0]->AllReduce(reductions, {"all", 2}).ok());
      for (size_t p = 0; p < kParts; ++p) {
        std::vector<float> expected(reduced[p].size());
        const std::vector<const void*> all = {sources[0][p].data(), sources[1][p].data(),
                                              sources[2][p].data()};
        TreeSum(all, expected.size(), DType::kF32, expected.data());
        ASSERT_EQ(reduced[p], expected) << "part " << p << ", staging " << staging;
        const size_t n = scattered[p].size();
        ASSERT_EQ(scattered[p], std::vector<float>(expected.begin() + static_cast<ptrdiff_t>(me * n),
                                                   expected.begin() + static_cast<ptrdiff_t>(me * n + n)));
      }
    }
  });
}

class CaptureTest : public ::testing::TestWithParam<bool> {};

TEST_P(CaptureTest, WhatIsCapturedRunsOnlyWhenReplayedAndEachTimeOnNewData) {
  FakeGpus gpus;
  TestWorld(3).RunThreads([&](const Rendezvous& rendezvous) {
    StreamRank rank(CreateCommunicators(rendezvous, 1, OnGpus(gpus, GetParam())).value());
    std::vector<float> data(40000), slice(5000), gathered(15000);
    rank.stream.Capture();
    const ReducePart sum{data.data(), data.data(), data.size(), DType::kF32};
    ASSERT_TRUE(rank.comm().AllReduce(absl::MakeConstSpan(&sum, 1), {"sum", 1}).ok());
    ASSERT_TRUE(rank.comm().AllGather(slice.data(), gathered.data(), slice.size() * 4, {"gather", 2}).ok());
    ASSERT_TRUE(rank.comm()
                    .ReduceScatter(gathered.data(), slice.data(), slice.size(), DType::kF32, {"scatter", 3})
                    .ok());
    ASSERT_GT(rank.stream.captured(), 2u);
    for (int step = 0; step < 3; ++step) {
      for (size_t i = 0; i < data.size(); ++i) data[i] = Small(rank.comm().rank() + step, i);
      for (size_t i = 0; i < slice.size(); ++i) slice[i] = Small(rank.comm().rank() - step, i);
      rank.stream.Replay();
      ASSERT_EQ(rank.stream.Finish(), 0);
      for (size_t i = 0; i < data.size(); ++i) {
        const float sum = Small(step, i) + Small(1 + step, i) + Small(2 + step, i);
        ASSERT_EQ(data[i], sum) << "step " << step << " at " << i;
      }
      for (size_t i = 0; i < gathered.size(); ++i)
        ASSERT_EQ(gathered[i], Small(static_cast<int>(i / slice.size()) - step, i % slice.size()));
      for (size_t i = 0; i < slice.size(); ++i) {
        ASSERT_EQ(slice[i], 3 * gathered[static_cast<size_t>(rank.comm().rank()) * slice.size() + i]);
      }
    }
    rank.stream.Forget();  // first: communicators wait for their recordings
  });
}

INSTANTIATE_TEST_SUITE_P(Modes, CaptureTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "deterministic" : "fast"; });

TEST(BufferTest, RegisteredMemoryIsForgottenBeforeItGoes) {
  FakeGpus gpus;
  std::atomic<int> registered = 0;
  TestWorld(2).RunThreads([&](const Rendezvous& rendezvous) {
    StreamRank rank(CreateCommunicators(rendezvous, 2, OnGpus(gpus, false)).value());
    std::vector<float> arena(100);
    for (auto& comm : rank.communicators)
      ASSERT_TRUE(comm->RegisterBuffer(arena.data(), arena.size() * 4).ok());
    registered += 2;
    while (registered < 4) absl::SleepFor(absl::Milliseconds(1));
    EXPECT_GE(gpus.registrations(), rendezvous.rank() == 0 ? 2 : 0);
    for (auto& comm : rank.communicators) comm->Detach();
    EXPECT_TRUE(absl::IsInternal(rank.comm().AllGather(nullptr, nullptr, 0, {"gather", 1})))
        << "there is no stream any more";
  });
  EXPECT_EQ(gpus.registrations(), 0);
}

TEST(SingleRankTest, CopiesOnItsStream) {
  FakeGpus gpus;
  LaunchEnvironment alone;
  auto rendezvous = Rendezvous::Join(alone, TestWorld::Options()).value();
  StreamRank rank(CreateCommunicators(*rendezvous, 1, OnGpus(gpus, false)).value());
  EXPECT_EQ(rank.comm().size(), 1);
  std::vector<float> a = {1, 2, 3}, b(3), c(3);
  rank.stream.Capture();
  ASSERT_TRUE(rank.comm().AllGather(a.data(), b.data(), 12, {"gather", 1}).ok());
  ASSERT_TRUE(rank.comm().ReduceScatter(a.data(), c.data(), 3, DType::kF32, {"scatter", 2}).ok());
  ASSERT_TRUE(rank.comm().AllReduce(a.data(), 3, DType::kF32, {"all", 3}).ok());
  a = {4, 5, 6};
  rank.stream.Replay();
  ASSERT_EQ(rank.stream.Finish(), 0);
  EXPECT_EQ(b, (std::vector<float>{4, 5, 6}));
  EXPECT_EQ(c, (std::vector<float>{4, 5, 6}));
  EXPECT_EQ(gpus.communicators(), 0) << "NCCL is not asked";
}

}  // namespace
}  // namespace ft
