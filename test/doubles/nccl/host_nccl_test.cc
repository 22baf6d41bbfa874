// What runs on emulated GPUs stand on: NCCL's communicators over shared memory.
#include "test/doubles/nccl/host_nccl.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "runtime/collective/create.h"
#include "runtime/collective/testing/test_world.h"
#include "runtime/collective/tree_sum.h"
#include "test/doubles/nccl/fake_gpus.h"

namespace ft::testing {
namespace {

CommunicatorOptions Emulated(HostDriver& driver, bool deterministic) {
  CommunicatorOptions options;
  options.timeout = absl::Seconds(30);
  options.cuda = CudaSide{.driver = &driver, .rank_sum = cuda::RankSum, .nccl = std::make_shared<HostNccl>()};
  options.deterministic = deterministic;
  return options;
}

float Rough(int rank, size_t i) {
  uint32_t x = static_cast<uint32_t>(i) * 2654435761u + static_cast<uint32_t>(rank) * 40503u + 77u;
  x ^= x >> 15, x *= 2246822519u, x ^= x >> 13;
  return (static_cast<float>(x & 0xFFFF) - 32768.0f) * std::ldexp(1.0f, static_cast<int>(x >> 16 & 15) - 20);
}

std::vector<float> Filled(int rank, size_t n) {
  std::vector<float> values(n);
  for (size_t i = 0; i < n; ++i) values[i] = Rough(rank, i);
  return values;
}

void CheckGroup(Communicator& comm, const std::vector<int>& ranks, bool deterministic) {
  const size_t n = 30011, size = ranks.size(), own = static_cast<size_t>(comm.rank());
  std::vector<std::vector<float>> all;
  std::vector<const void*> parts;
  for (const int rank : ranks) all.push_back(Filled(rank, n * size));
  for (const auto& one : all) parts.push_back(one.data());
  std::vector<float> expected(n * size);
  if (deterministic) {
    TreeSum(parts, expected.size(), DType::kF32, expected.data());
  } else {
    for (size_t rank = size; rank-- > 0;)
      for (size_t i = 0; i < expected.size(); ++i) expected[i] += all[rank][i];
  }

  std::vector<float> whole = all[own], slice(n);
  ASSERT_TRUE(comm.ReduceScatter(whole.data(), slice.data(), n, DType::kF32, {"scatter", 1}).ok());
  const auto first = expected.begin() + static_cast<ptrdiff_t>(own * n);
  ASSERT_EQ(slice, std::vector<float>(first, first + static_cast<ptrdiff_t>(n)));
  ASSERT_TRUE(comm.AllReduce(whole.data(), whole.size(), DType::kF32, {"all", 2}).ok());
  ASSERT_EQ(whole, expected);
  std::vector<float> gathered(n * size);
  ASSERT_TRUE(comm.AllGather(slice.data(), gathered.data(), n * 4, {"gather", 3}).ok());
  ASSERT_EQ(gathered, expected);
  for (int root = 0; root < static_cast<int>(size); ++root) {
    std::vector<float> data = all[own];
    ASSERT_TRUE(comm.Broadcast(data.data(), data.size() * 4, root, {"broadcast", 4}).ok());
    ASSERT_EQ(data, all[static_cast<size_t>(root)]);
  }
}

class HostNcclTest : public ::testing::TestWithParam<bool> {};

TEST_P(HostNcclTest, CarriesEveryCollectiveOfEveryGroup) {
  TestWorld(6).RunThreads([](const Rendezvous& rendezvous) {
    HostDriver driver;
    const int me = rendezvous.rank();
    const std::vector<CommunicatorGroup> groups = {
        {{me / 3 * 3, me / 3 * 3 + 1, me / 3 * 3 + 2}}, {{me % 3, me % 3 + 3}}, {{0, 1, 2, 3, 4, 5}}, {{me}}};
    auto made = CreateCommunicators(rendezvous, groups, Emulated(driver, GetParam()));
    ASSERT_TRUE(made.ok()) << made.status();
    for (size_t g = 0; g < groups.size(); ++g) {
      WaitingCommunicator comm(std::move((*made)[g]));
      CheckGroup(comm, groups[g].ranks, GetParam());
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Modes, HostNcclTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "deterministic" : "fast"; });

// A stream that runs its work as it gets it, as emulated ones do: the call itself waits then.
class PromptStream final : public CUstream_st {
 public:
  int Submit(const char*, std::function<int()> work) override { return work(); }
};

TEST(HostNcclTrouble, AbortWakesACallThatWaits) {
  TestWorld(2).RunThreads([](const Rendezvous& rendezvous) {
    HostDriver driver;
    PromptStream stream;
    auto made = CreateCommunicators(rendezvous, 1, Emulated(driver, false)).value();
    made[0]->AttachStream(static_cast<CUstream_st*>(&stream));
    std::vector<float> x(100);
    ASSERT_TRUE(made[0]->AllReduce(x.data(), 100, DType::kF32, {"first", 1}).ok());
    if (rendezvous.rank() == 1) {
      absl::SleepFor(absl::Milliseconds(600));
      return;
    }
    std::thread waker([&] {
      absl::SleepFor(absl::Milliseconds(100));
      made[0]->Abort(absl::UnavailableError("rank 1 was lost"));
    });
    made[0]->AllReduce(x.data(), 100, DType::kF32, {"never", 2}).IgnoreError();
    waker.join();
    EXPECT_EQ(made[0]->AllReduce(x.data(), 100, DType::kF32, {"later", 3}).message(), "rank 1 was lost");
  });
}

// NCCL's calls do not wait, unless its variable NCCL_COMM_BLOCKING makes them: the watch goes on meanwhile.
TEST(HostNcclTrouble, ATimeOutWakesItToo) {
  TestWorld(2).RunThreads([](const Rendezvous& rendezvous) {
    HostDriver driver;
    PromptStream stream;
    CommunicatorOptions options = Emulated(driver, false);
    options.timeout = absl::Seconds(1);
    auto made = CreateCommunicators(rendezvous, 1, options).value();
    made[0]->AttachStream(static_cast<CUstream_st*>(&stream));
    std::vector<float> x(100);
    ASSERT_TRUE(made[0]->AllReduce(x.data(), 100, DType::kF32, {"first", 1}).ok());
    if (rendezvous.rank() == 1) {
      absl::SleepFor(absl::Seconds(3));
      return;
    }
    made[0]->AllReduce(x.data(), 100, DType::kF32, {"never", 2}).IgnoreError();
    const absl::Status status = made[0]->AllReduce(x.data(), 100, DType::kF32, {"later", 3});
    EXPECT_NE(status.message().find("timed out after 1s in 'never' #2 waiting for rank 1"), std::string::npos)
        << status;
  });
}

}  // namespace
}  // namespace ft::testing
