// Every backend against one reference, bit by bit; and what happens when ranks stop, die or disagree.
#include <dirent.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "runtime/collective/create.h"
#include "runtime/collective/liveness/peer_monitor.h"
#include "runtime/collective/testing/any_backend.h"
#include "runtime/collective/testing/test_world.h"

namespace ft {
namespace {

using testing::ForkedRank;
using testing::TestWorld;
using testing::WriteLine;

CommunicatorOptions With(CollectiveBackend backend) {
  CommunicatorOptions options;
  options.backend = backend;
  options.timeout = absl::Seconds(30);
  return options;
}

// What rank `rank` holds at index i: all magnitudes, so that every other order of additions gives other bits.
float Value(int rank, size_t i) {
  uint32_t x = static_cast<uint32_t>(i) * 2654435761u + static_cast<uint32_t>(rank) * 40503u + 12345u;
  x ^= x >> 15, x *= 2246822519u, x ^= x >> 13;
  return (static_cast<float>(x & 0xFFFF) - 32768.0f) * std::ldexp(1.0f, static_cast<int>(x >> 16 & 15) - 20);
}

// The sum of ranks [first, first + n), written as the design words it.
float ReferenceSum(int first, int n, size_t i) {
  if (n == 1) return Value(first, i);
  int split = 1;
  while (split * 2 < n) split *= 2;
  const float left = ReferenceSum(first, split, i), right = ReferenceSum(first + split, n - split, i);
  return left + right;
}

std::vector<float> Filled(int rank, size_t first, size_t n) {
  std::vector<float> values(n);
  for (size_t i = 0; i < n; ++i) values[i] = Value(rank, first + i);
  return values;
}

void ExpectSameBits(const std::vector<float>& got, const std::vector<float>& expected,
                    const std::string& where) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(std::memcmp(&got[i], &expected[i], 4), 0)
        << where << " at " << i << ": " << got[i] << " != " << expected[i];
  }
}

class CollectiveTest : public ::testing::TestWithParam<std::tuple<CollectiveBackend, int>> {
 protected:
  CollectiveBackend backend() const { return std::get<0>(GetParam()); }
  int size() const { return std::get<1>(GetParam()); }
  // The large one takes several chunks of every backend.
  std::vector<size_t> Counts() const { return {0, 1, 7, 1024, 1000003u / static_cast<size_t>(size())}; }

  void Run(const std::function<void(Communicator&)>& body) const {
    testing::AnyBackend any(backend());
    TestWorld(size()).RunThreads([&](const Rendezvous& rendezvous) {
      auto communicators = any.Create(rendezvous, 1);
      ASSERT_TRUE(communicators.ok()) << communicators.status();
      body(*communicators->front());
      ASSERT_TRUE(communicators->front()->Barrier({"end", 0}).ok());
    });
  }
};

TEST_P(CollectiveTest, AllGather) {
  Run([&](Communicator& comm) {
    for (const size_t count : Counts()) {
      const auto n = static_cast<size_t>(size());
      std::vector<float> expected;
      for (int r = 0; r < size(); ++r) {
        const auto part = Filled(r, 0, count);
        expected.insert(expected.end(), part.begin(), part.end());
      }
      const std::vector<float> src = Filled(comm.rank(), 0, count);
      std::vector<float> dst(count * n, -1.0f);
      ASSERT_TRUE(comm.AllGather(src.data(), dst.data(), count * 4, {"gather", count}).ok());
      ExpectSameBits(dst, expected, "all_gather");

      std::vector<float> in_place(count * n, -1.0f);
      float* own = in_place.data() + static_cast<size_t>(comm.rank()) * count;
      std::copy(src.begin(), src.end(), own);
      ASSERT_TRUE(comm.AllGather(own, in_place.data(), count * 4, {"gather in place", count}).ok());
      ExpectSameBits(in_place, expected, "all_gather in place");
    }
  });
}

// Two parts from each rank to each, itself included, all of different lengths, some empty.
TEST_P(CollectiveTest, AllToAll) {
  Run([&](Communicator& comm) {
    const int me = comm.rank();
    for (const size_t count : Counts()) {
      const auto length = [&](int from, int to, int part) {
        return count / static_cast<size_t>(1 + from + 2 * to + 3 * part);
      };
      const auto filled = [&](int from, int to, int part) {
        return Filled(from, static_cast<size_t>(100 * to + 10 * part), length(from, to, part));
      };
      std::vector<std::vector<float>> sent, received;
      std::vector<SendPart> sends;
      std::vector<ReceivePart> receives;
      size_t most = 0;
      for (int peer = 0; peer < size(); ++peer)
        for (int part = 0; part < 2; ++part) {
          sent.push_back(filled(me, peer, part));
          received.emplace_back(length(peer, me, part), -1.0f);
          sends.push_back({sent.back().data(), sent.back().size() * 4, peer});
          receives.push_back({received.back().data(), received.back().size() * 4, peer});
        }
      for (int from = 0; from < size(); ++from)
        for (int to = 0; to < size(); ++to)
          if (from != to) most = std::max(most, (length(from, to, 0) + length(from, to, 1)) * 4);
      ASSERT_TRUE(comm.AllToAll({sends, receives, most}, {"all_to_all", count}).ok());
      for (int peer = 0; peer < size(); ++peer)
        for (int part = 0; part < 2; ++part)
          ExpectSameBits(received[static_cast<size_t>(2 * peer + part)], filled(peer, me, part),
                         "all_to_all");
    }
  });
}

TEST_P(CollectiveTest, ReduceScatterAndAllReduceHaveTheBitsOfTheTree) {
  Run([&](Communicator& comm) {
    for (const size_t count : Counts()) {
      const size_t whole = count * static_cast<size_t>(size());
      const size_t own = static_cast<size_t>(comm.rank()) * count;
      std::vector<float> expected(whole);
      for (size_t i = 0; i < whole; ++i) expected[i] = ReferenceSum(0, size(), i);
      const std::vector<float> slice(expected.begin() + static_cast<ptrdiff_t>(own),
                                     expected.begin() + static_cast<ptrdiff_t>(own + count));

      std::vector<float> src = Filled(comm.rank(), 0, whole);
      std::vector<float> dst(count, -1.0f);
      ASSERT_TRUE(comm.ReduceScatter(src.data(), dst.data(), count, DType::kF32, {"reduce", count}).ok());
      ExpectSameBits(dst, slice, "reduce_scatter");

      // Not divisible by the number of ranks, either.
      std::vector<float> data = src;
      const size_t odd = whole > 3 ? whole - 3 : whole;
      ASSERT_TRUE(comm.AllReduce(data.data(), odd, DType::kF32, {"all_reduce", count}).ok());
      for (size_t i = odd; i < whole; ++i) ASSERT_EQ(data[i], src[i]) << "wrote behind the end";
      data.resize(odd);
      expected.resize(odd);
      ExpectSameBits(data, expected, "all_reduce");

      ASSERT_TRUE(
          comm.ReduceScatter(src.data(), src.data() + own, count, DType::kF32, {"in place", count}).ok());
      dst.assign(src.begin() + static_cast<ptrdiff_t>(own),
                 src.begin() + static_cast<ptrdiff_t>(own + count));
      ExpectSameBits(dst, slice, "reduce_scatter in place");
    }
  });
}

// Cutting a buffer in two calls anywhere gives the same bits as one.
TEST_P(CollectiveTest, ResultsDoNotDependOnCuts) {
  Run([&](Communicator& comm) {
    const size_t count = 300007;
    std::vector<float> whole = Filled(comm.rank(), 0, count), cut = whole;
    ASSERT_TRUE(comm.AllReduce(whole.data(), count, DType::kF32, {"whole", 1}).ok());
    const size_t at = 123457;
    ASSERT_TRUE(comm.AllReduce(cut.data(), at, DType::kF32, {"first", 2}).ok());
    ASSERT_TRUE(comm.AllReduce(cut.data() + at, count - at, DType::kF32, {"second", 3}).ok());
    ExpectSameBits(cut, whole, "cut");
  });
}

TEST_P(CollectiveTest, IntegersBroadcastAndRefusals) {
  Run([&](Communicator& comm) {
    std::vector<int64_t> words(5000);
    for (size_t i = 0; i < words.size(); ++i)
      words[i] = (int64_t{1} << 60) + static_cast<int64_t>(i) + comm.rank();
    ASSERT_TRUE(comm.AllReduce(words.data(), words.size(), DType::kI64, {"words", 1}).ok());
    const int64_t n = size();
    for (size_t i = 0; i < words.size(); ++i) {
      const auto expected =
          static_cast<uint64_t>(n) * ((uint64_t{1} << 60) + i) + static_cast<uint64_t>(n * (n - 1) / 2);
      ASSERT_EQ(static_cast<uint64_t>(words[i]), expected);
    }
    for (int root = 0; root < size(); ++root) {
      std::vector<float> data = Filled(comm.rank(), 0, 200001);
      ASSERT_TRUE(comm.Broadcast(data.data(), data.size() * 4, root, {"broadcast", 2}).ok());
      ExpectSameBits(data, Filled(root, 0, 200001), "broadcast");
    }
    float x = 0;
    EXPECT_TRUE(absl::IsInvalidArgument(comm.Broadcast(&x, 4, size(), {"root", 3})));
    EXPECT_TRUE(absl::IsInvalidArgument(comm.AllReduce(words.data(), 1, DType::kU8, {"bytes", 4})));
    EXPECT_EQ(comm.staging_bytes(), testing::AnyBackend(backend()).Staging(size()));
  });
}

std::string TestName(const ::testing::TestParamInfo<std::tuple<CollectiveBackend, int>>& info) {
  return std::string(Name(std::get<0>(info.param))) + "_" + std::to_string(std::get<1>(info.param));
}
INSTANTIATE_TEST_SUITE_P(Local, CollectiveTest,
                         ::testing::Values(std::make_tuple(CollectiveBackend::kLocal, 1)), TestName);
INSTANTIATE_TEST_SUITE_P(Several, CollectiveTest,
                         ::testing::Combine(::testing::Values(CollectiveBackend::kShm,
                                                              CollectiveBackend::kGloo,
                                                              CollectiveBackend::kNccl),
                                            ::testing::Values(2, 3, 4, 5, 8)),
                         TestName);

class CollectiveFailureTest : public ::testing::TestWithParam<CollectiveBackend> {};

TEST_P(CollectiveFailureTest, AbortWakesAndStays) {
  TestWorld(3).RunThreads([&](const Rendezvous& rendezvous) {
    auto communicators = CreateCommunicators(rendezvous, 2, With(GetParam())).value();
    Communicator& comm = *communicators[0];
    ASSERT_TRUE(comm.Barrier({"all", 1}).ok());
    if (rendezvous.rank() == 2) {
      absl::SleepFor(
          absl::Milliseconds(300));  // never comes; keeps its connections until the others are awake
      return;
    }
    std::thread waker([&] {
      absl::SleepFor(absl::Milliseconds(50));
      comm.Abort(absl::UnavailableError("rank 2 was lost"));
    });
    const absl::Time start = absl::Now();
    EXPECT_EQ(comm.Barrier({"never", 2}).message(), "rank 2 was lost");
    EXPECT_LT(absl::Now() - start, absl::Milliseconds(250));
    waker.join();
    float x = 0;
    EXPECT_EQ(comm.AllReduce(&x, 1, DType::kF32, {"later", 3}).message(), "rank 2 was lost");
  });
}

TEST_P(CollectiveFailureTest, ATimeOutNamesTheCollectiveAndTheMissingRank) {
  TestWorld(3).RunThreads([&](const Rendezvous& rendezvous) {
    CommunicatorOptions options = With(GetParam());
    options.timeout = absl::Milliseconds(200);
    auto communicators = CreateCommunicators(rendezvous, 1, options).value();
    if (rendezvous.rank() == 2) {
      absl::SleepFor(absl::Milliseconds(600));
      return;
    }
    float x = 0;
    const absl::Status status = communicators[0]->AllReduce(&x, 1, DType::kF32, {"all_reduce h.3", 7});
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    for (const char* word : {"all_reduce h.3", "#1", "rank 2"})
      EXPECT_NE(status.message().find(word), std::string::npos) << status;
  });
}

// Ranks 0 and 1 wait for rank 2, and rank 3 for rank 0, each as long: rank 3 began, and says so first.
TEST_P(CollectiveFailureTest, WhoWaitsForARankThatWaitsNamesTheMissingOne) {
  absl::Notification first;
  TestWorld(4).RunThreads([&](const Rendezvous& rendezvous) {
    const int rank = rendezvous.rank();
    auto monitor = PeerMonitor::Start(rendezvous).value();
    CommunicatorOptions options = With(GetParam());
    options.timeout = absl::Milliseconds(200);
    using Groups = std::vector<CommunicatorGroup>;
    const Groups groups = rank == 3   ? Groups{{{3}}, {{0, 3}}}
                          : rank == 0 ? Groups{{{0, 1, 2}}, {{0, 3}}}
                                      : Groups{{{0, 1, 2}}, {{rank}}};
    auto communicators = CreateCommunicators(rendezvous, groups, options).value();
    absl::Notification told;
    monitor->OnLoss([&](const absl::Status&) { told.Notify(); });
    if (rank == 2) {  // never comes, and keeps its connections until the others have said so
      EXPECT_TRUE(told.WaitForNotificationWithTimeout(absl::Seconds(20)));
    } else {
      if (rank != 3) first.WaitForNotification();
      absl::Status status = communicators[rank == 3 ? 1 : 0]->Barrier({"step", 1});
      EXPECT_TRUE(absl::IsUnavailable(status)) << status;
      if (rank == 3) first.Notify();
      status = monitor->Explain(status);
      EXPECT_NE(status.message().find("waiting for rank 2 "), std::string::npos) << status;
      monitor->Fail(std::string(status.message()));
    }
    monitor->OnLoss({});
  });
}

TEST_P(CollectiveFailureTest, RanksInDifferentCollectivesAreTold) {
  TestWorld(2).RunThreads([&](const Rendezvous& rendezvous) {
    auto communicators = CreateCommunicators(rendezvous, 1, With(GetParam())).value();
    std::vector<float> data(8);
    const absl::Status status =
        rendezvous.rank() == 0 ? communicators[0]->AllReduce(data.data(), 4, DType::kF32, {"norm", 1})
                               : communicators[0]->AllGather(data.data(), data.data(), 16, {"gather h.0", 1});
    EXPECT_TRUE(absl::IsInternal(status) || absl::IsUnavailable(status)) << status;
    if (absl::IsInternal(status)) {
      EXPECT_NE(status.message().find("'norm'"), std::string::npos) << status;
      EXPECT_NE(status.message().find("'gather h.0'"), std::string::npos) << status;
    }
  });
}

size_t SegmentsInShm() {
  size_t count = 0;
  DIR* directory = opendir("/dev/shm");
  while (const dirent* entry = readdir(directory)) {
    const std::string own = "ftexec-" + std::to_string(getpid());
    count += std::strncmp(entry->d_name, own.c_str(), own.size()) == 0 ? 1 : 0;
  }
  closedir(directory);
  return count;
}

// One rank in the middle of a stream of collectives, as the executor wires it up.
int TrainUntilLost(const TestWorld& world, int rank, CollectiveBackend backend, int out) {
  auto rendezvous = Rendezvous::Join(world.EnvironmentOf(rank), TestWorld::Options()).value();
  auto monitor = PeerMonitor::Start(*rendezvous).value();
  auto communicators = CreateCommunicators(*rendezvous, 1, With(backend)).value();
  monitor->OnLoss([&](const absl::Status& reason) { communicators[0]->Abort(reason); });
  std::vector<float> data(300000);
  WriteLine(out, "ready");
  absl::Status status;
  for (uint64_t step = 0; status.ok(); ++step) {
    status = communicators[0]->AllReduce(data.data(), data.size(), DType::kF32, {"step", step});
  }
  monitor->OnLoss({});
  WriteLine(out, std::string(monitor->Explain(status).message()));
  return absl::IsUnavailable(status) ? 75 : 1;
}

TEST_P(CollectiveFailureTest, AKilledRankIsNamedWithinTwoSecondsAndLeavesNoSegment) {
  for (const int victim : {0, 1}) {
    TestWorld world(3);
    std::vector<ForkedRank> ranks;
    for (int rank = 0; rank < 3; ++rank) {
      ranks.emplace_back([&, rank](int out) { return TrainUntilLost(world, rank, GetParam(), out); });
    }
    for (const ForkedRank& rank : ranks) ASSERT_EQ(rank.ReadLine(), "ready");
    absl::SleepFor(absl::Milliseconds(50));
    const absl::Time killed = absl::Now();
    kill(ranks[static_cast<size_t>(victim)].pid(), SIGKILL);
    for (int rank = 0; rank < 3; ++rank) {
      if (rank == victim) continue;
      const std::string said = ranks[static_cast<size_t>(rank)].ReadLine();
      EXPECT_EQ(said.find("rank " + std::to_string(victim) + " was lost"), 0u) << said;
      const int status = ranks[static_cast<size_t>(rank)].Wait();
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 75) << status;
    }
    EXPECT_LT(absl::Now() - killed, absl::Seconds(2));
    for (const ForkedRank& rank : ranks) {
      const std::string name = "/dev/shm/ftexec-" + std::to_string(rank.pid());
      EXPECT_NE(access(name.c_str(), F_OK), 0);
    }
    EXPECT_EQ(SegmentsInShm(), 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Several, CollectiveFailureTest,
                         ::testing::Values(CollectiveBackend::kShm, CollectiveBackend::kGloo),
                         [](const auto& info) { return std::string(Name(info.param)); });

TEST(CreateTest, LeavesNothingInDevShm) {
  TestWorld(3).RunThreads([](const Rendezvous& rendezvous) {
    auto communicators = CreateCommunicators(rendezvous, 2, With(CollectiveBackend::kAuto)).value();
    EXPECT_EQ(SegmentsInShm(), 0u);  // the names are gone as soon as all have mapped them
    EXPECT_EQ(communicators[0]->staging_bytes(), StagingBytes(CollectiveBackend::kShm, 3));
  });
}

TEST(CreateTest, BackendsByName) {
  EXPECT_EQ(ParseCollectiveBackend("gloo").value(), CollectiveBackend::kGloo);
  EXPECT_EQ(ParseCollectiveBackend("nccl").value(), CollectiveBackend::kNccl);
  EXPECT_TRUE(absl::IsInvalidArgument(ParseCollectiveBackend("mpi").status()));
  EXPECT_EQ(StagingBytes(CollectiveBackend::kLocal, 1), 0u);
}

TEST(CreateTest, AnInterruptionEndsTheWaitForPeers) {
  TestWorld(2).RunThreads([](const Rendezvous& rendezvous) {
    if (rendezvous.rank() == 1) return;  // never makes its communicators
    for (const auto backend : {CollectiveBackend::kShm, CollectiveBackend::kGloo}) {
      CommunicatorOptions options = With(backend);
      options.interrupted = [] { return absl::UnavailableError("rank 1 was lost"); };
      EXPECT_EQ(CreateCommunicators(rendezvous, 1, options).status().message(), "rank 1 was lost");
    }
  });
}

}  // namespace
}  // namespace ft
