// The execution model itself: what it computes, and that it reports what a GPU would hang on or silently get
// wrong. Kernels here are as those of runtime/kernels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "runtime/backends/cuda/device_code/element.h"
#include "runtime/backends/cuda/device_code/reduce.h"
#include "test/doubles/cuda/fiber.h"
#include "test/doubles/cuda/launch.h"

namespace ft::cuda {
namespace {

using emulation::LastMessage;
using emulation::Order;
using testing::AllOf;
using testing::HasSubstr;

class ExecutionModel : public testing::TestWithParam<Order> {
 protected:
  void SetUp() override { emulation::SetOrder(GetParam()); }
  void TearDown() override { emulation::SetOrder(Order::kAscending); }
};

INSTANTIATE_TEST_SUITE_P(Orders, ExecutionModel, testing::Values(Order::kAscending, Order::kDescending),
                         [](const auto& info) {
                           return info.param == Order::kAscending ? "Ascending" : "Descending";
                         });

__global__ void __launch_bounds__(1024) WriteIndices(int* out) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread = threadIdx.x + blockDim.x * threadIdx.y;
  out[block * blockDim.x * blockDim.y + thread] += static_cast<int>(block * 10000 + thread);
}

TEST_P(ExecutionModel, EveryThreadOfEveryBlockRunsOnce) {
  std::vector<int> out(2 * 3 * 5 * 7 * 11, 0);
  const LaunchShape shape = {.grid_x = 2, .grid_y = 3, .grid_z = 5, .block_x = 7, .block_y = 11};
  ASSERT_EQ(Launch(WriteIndices, shape, nullptr, out.data()), 0) << LastMessage();
  for (int i = 0; i < static_cast<int>(out.size()); ++i) EXPECT_EQ(out[i], i / 77 * 10000 + i % 77);
}

// Each thread passes its number round the block, one place a round.
__global__ void Rotate(int* out, int rounds) {
  int* shared = DynamicShared<int>();
  const unsigned i = threadIdx.x;
  shared[i] = static_cast<int>(i);
  __syncthreads();
  for (int round = 0; round < rounds; ++round) {
    const int next = shared[(i + 1) % blockDim.x];
    __syncthreads();
    shared[i] = next;
    __syncthreads();
  }
  out[blockIdx.x * blockDim.x + i] = shared[i];
}

TEST_P(ExecutionModel, BarriersSeparateWritesFromReads) {
  for (unsigned threads : {1u, 31u, 256u, 1000u}) {
    std::vector<int> out(2 * threads, -1);
    const LaunchShape shape = {.grid_x = 2, .block_x = threads, .shared_bytes = threads * sizeof(int)};
    ASSERT_EQ(Launch(Rotate, shape, nullptr, out.data(), 5), 0) << LastMessage();
    for (unsigned i = 0; i < 2 * threads; ++i) EXPECT_EQ(out[i], static_cast<int>((i + 5) % threads));
  }
}

__global__ void BarrierVotes(int* out) {
  const int i = static_cast<int>(threadIdx.x);
  const int any = __syncthreads_or(i == 70), none = __syncthreads_or(i > 1000);
  const int all = __syncthreads_and(i < 1000), most = __syncthreads_and(i != 3);
  const int count = __syncthreads_count(i % 3 == 0);
  out[i] = any + 10 * none + 100 * all + 1000 * most + 10000 * count;
}

TEST_P(ExecutionModel, VotesOfTheBlock) {
  std::vector<int> out(100);
  ASSERT_EQ(Launch(BarrierVotes, {.block_x = 100}, nullptr, out.data()), 0) << LastMessage();
  EXPECT_EQ(out, std::vector<int>(100, 340101));
}

struct Shuffled {
  int index, up, down, exchange, narrow_index, narrow_up, narrow_down, narrow_exchange;
  double wide;
  bool operator==(const Shuffled&) const = default;
};

__global__ void Shuffles(Shuffled* out) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp, value = 100 + lane;
  Shuffled s;
  s.index = __shfl_sync(kAllLanes, value, lane * 3);
  s.up = __shfl_up_sync(kAllLanes, value, 3);
  s.down = __shfl_down_sync(kAllLanes, value, 3);
  s.exchange = __shfl_xor_sync(kAllLanes, value, 5);
  s.narrow_index = __shfl_sync(kAllLanes, value, 9, 8);
  s.narrow_up = __shfl_up_sync(kAllLanes, value, 2, 8);
  s.narrow_down = __shfl_down_sync(kAllLanes, value, 2, 8);
  s.narrow_exchange = __shfl_xor_sync(kAllLanes, value, 8, 8);
  s.wide = __shfl_xor_sync(kAllLanes, 0.5 + lane * 1e-9, 1);
  out[threadIdx.x] = s;
}

// By the definitions in the programming guide.
TEST_P(ExecutionModel, ShufflesReadTheLaneThatTheManualSays) {
  std::vector<Shuffled> out(96);
  ASSERT_EQ(Launch(Shuffles, {.block_x = 96}, nullptr, out.data()), 0) << LastMessage();
  for (int i = 0; i < 96; ++i) {
    const int lane = i % 32, in = lane % 8, begin = lane - in;
    const Shuffled expected = {.index = 100 + lane * 3 % 32,
                               .up = 100 + (lane >= 3 ? lane - 3 : lane),
                               .down = 100 + (lane + 3 < 32 ? lane + 3 : lane),
                               .exchange = 100 + (lane ^ 5),
                               .narrow_index = 100 + begin + 1,
                               .narrow_up = 100 + (in >= 2 ? lane - 2 : lane),
                               .narrow_down = 100 + (in + 2 < 8 ? lane + 2 : lane),
                               // A segment may read those before it, not those behind it.
                               .narrow_exchange = 100 + ((lane ^ 8) < lane ? lane ^ 8 : lane),
                               .wide = 0.5 + (lane ^ 1) * 1e-9};
    EXPECT_EQ(out[i], expected) << "lane " << lane;
  }
}

__global__ void HalvesOfAWarp(int* sums, unsigned* ballots) {
  const int lane = static_cast<int>(threadIdx.x);
  int value = lane;
  if (lane < 16) {
    for (int offset = 8; offset > 0; offset /= 2) value += __shfl_xor_sync(0x0000FFFFu, value, offset);
  } else if (lane < 24) {
    for (int offset = 4; offset > 0; offset /= 2) value += __shfl_xor_sync(0x00FF0000u, value, offset);
  } else {
    __syncwarp(0xFF000000u);
    ballots[0] = __ballot_sync(0xFF000000u, lane % 2);
    ballots[1] = static_cast<unsigned>(
        __any_sync(0xFF000000u, lane == 30) + 2 * __all_sync(0xFF000000u, lane > 24) +
        4 * __all_sync(0xFF000000u, lane > 23) + 8 * __any_sync(0xFF000000u, lane == 3));
  }
  __syncwarp();
  sums[lane] = value;
}

TEST_P(ExecutionModel, PartsOfAWarpGoTheirWays) {
  std::vector<int> sums(32);
  unsigned ballots[2] = {};
  ASSERT_EQ(Launch(HalvesOfAWarp, {.block_x = 32}, nullptr, sums.data(), &ballots[0]), 0) << LastMessage();
  for (int i = 0; i < 32; ++i) EXPECT_EQ(sums[i], i < 16 ? 120 : i < 24 ? 156 : i);
  EXPECT_EQ(ballots[0], 0xAA000000u);
  EXPECT_EQ(ballots[1], 5u);
}

template <int kThreads>
__global__ void Reduce(float* sums, float* maxima) {
  const float value = static_cast<float>((threadIdx.x * 37 + blockIdx.x) % 1000) - 500.0f;
  const float sum = BlockReduce<Sum, kThreads>(value), maximum = BlockReduce<Max, kThreads>(value);
  sums[blockIdx.x * kThreads + threadIdx.x] = sum;
  maxima[blockIdx.x * kThreads + threadIdx.x] = maximum;
}

template <int kThreads>
void CheckReduce() {
  std::vector<float> sums(3 * kThreads), maxima(3 * kThreads);
  ASSERT_EQ(Launch(Reduce<kThreads>, {.grid_x = 3, .block_x = kThreads}, nullptr, sums.data(), maxima.data()),
            0)
      << LastMessage();
  for (int block = 0; block < 3; ++block) {
    float sum = 0, maximum = -1e9f;
    for (int i = 0; i < kThreads; ++i) {
      const float value = static_cast<float>((i * 37 + block) % 1000) - 500.0f;
      sum += value;  // of integers: exact
      maximum = std::max(maximum, value);
    }
    for (int i = 0; i < kThreads; ++i) {
      EXPECT_EQ(sums[block * kThreads + i], sum);
      EXPECT_EQ(maxima[block * kThreads + i], maximum);
    }
  }
}

TEST_P(ExecutionModel, BlockReduceGivesEveryThreadTheResult) {
  CheckReduce<32>();
  CheckReduce<64>();
  CheckReduce<256>();
  CheckReduce<1024>();
}

__global__ void Count(int* sum, unsigned* largest, unsigned long long* bits, int* last) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int before = atomicAdd(sum, 1);
  if (before == static_cast<int>(gridDim.x * blockDim.x) - 1) *last = i;
  atomicMax(largest, static_cast<unsigned>(i * 7919 % 1000));
  atomicOr(bits, 1ull << (i % 64));
}

TEST_P(ExecutionModel, AtomicsReturnWhatWasThere) {
  int sum = 0, last = -1;
  unsigned largest = 0;
  unsigned long long bits = 0;
  ASSERT_EQ(Launch(Count, {.grid_x = 10, .block_x = 50}, nullptr, &sum, &largest, &bits, &last), 0);
  EXPECT_EQ(sum, 500);
  EXPECT_EQ(last, GetParam() == Order::kAscending ? 499 : 0);
  EXPECT_EQ(largest, 999u);
  EXPECT_EQ(bits, ~0ull);
}

__global__ void ReadUnwritten(unsigned* out) {
  __shared__ unsigned fixed[4];
  unsigned* dynamic = DynamicShared<unsigned>();
  out[2 * blockIdx.x] = fixed[3];
  out[2 * blockIdx.x + 1] = dynamic[1];
  fixed[3] = dynamic[1] = 7;
}

TEST_P(ExecutionModel, SharedMemoryBeginsAsGarbageInEveryBlock) {
  std::vector<unsigned> out(6);
  ASSERT_EQ(Launch(ReadUnwritten, {.grid_x = 3, .shared_bytes = 8}, nullptr, out.data()), 0);
  EXPECT_EQ(out, std::vector<unsigned>(6, 0xCDCDCDCDu));
}

__global__ void Overrun(int by) { DynamicShared<char>()[100 + by] = 1; }

TEST_P(ExecutionModel, OverrunOfDynamicSharedMemoryIsSeen) {
  const LaunchShape shape = {.shared_bytes = 100};
  EXPECT_EQ(Launch(Overrun, shape, nullptr, -1), 0);
  for (int by : {0, 17}) {
    if (FT_FIBER_ASAN) {
      EXPECT_DEATH(Launch(Overrun, shape, nullptr, by), "heap-buffer-overflow");
    } else {
      EXPECT_EQ(Launch(Overrun, shape, nullptr, by), emulation::kLaunchFailure);
      EXPECT_THAT(LastMessage(), AllOf(HasSubstr("Overrun"), HasSubstr("behind the end of dynamic shared")));
    }
  }
}

__global__ void DivergentBarrier(int exit_from) {
  if (static_cast<int>(threadIdx.x) >= exit_from) return;
  __syncthreads();
}
__global__ void TwoBarriers() {
  if (threadIdx.x < 40) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}
__global__ void MissingLane() {
  if (threadIdx.x != 37) __shfl_xor_sync(kAllLanes, 1.0f, 1);
}
__global__ void MissingInSyncWarp() {
  if (threadIdx.x % 32 < 8) __syncwarp(0x1FFu);
}
__global__ void OtherMask() { __any_sync(threadIdx.x < 5 ? 0x0000001Fu : kAllLanes, 1); }
__global__ void OtherPlace() {
  if (threadIdx.x % 2 == 0) {
    __shfl_sync(kAllLanes, 1, 0);
  } else {
    __shfl_sync(kAllLanes, 1, 0);
  }
}
__global__ void NotInOwnMask() { __ballot_sync(0xFFFFFFFEu, 1); }
__global__ void WidthOfThree() { __shfl_sync(kAllLanes, 1, 0, 3); }

// The launch fails, says where, and the next one works.
template <typename... Parameters, typename... Arguments>
std::string Problem(void (*kernel)(Parameters...), unsigned threads, const Arguments&... arguments) {
  EXPECT_EQ(Launch(kernel, {.grid_x = 2, .block_x = threads}, nullptr, arguments...),
            emulation::kLaunchFailure);
  const std::string message = LastMessage();
  CheckReduce<256>();
  return message;
}

TEST_P(ExecutionModel, WaitingInVainIsReported) {
  EXPECT_THAT(Problem(DivergentBarrier, 100, 60),
              AllOf(HasSubstr("DivergentBarrier, block (" +
                              std::string(GetParam() == Order::kAscending ? "0" : "1") + ", 0, 0)"),
                    HasSubstr("execution_model_test.cc"), HasSubstr("thread (0, 0, 0) at __syncthreads"),
                    HasSubstr("and 59 more"), HasSubstr("40 of 100 have exited")));
  EXPECT_THAT(Problem(TwoBarriers, 100), AllOf(HasSubstr("thread (0, 0, 0) at __syncthreads"),
                                               HasSubstr("thread (40, 0, 0) at __syncthreads")));
  EXPECT_THAT(Problem(MissingLane, 64),
              AllOf(HasSubstr("thread (32, 0, 0) at __shfl_xor_sync of mask 0xffffffff"),
                    HasSubstr("30 more"), HasSubstr("33 of 64 have exited")));
  EXPECT_THAT(Problem(MissingLane, 20), HasSubstr("0 of 20 have exited"));  // lanes 20 to 31 do not exist
  EXPECT_THAT(Problem(MissingInSyncWarp, 32), HasSubstr("at __syncwarp of mask 0x000001ff"));
  EXPECT_THAT(Problem(OtherMask, 32), HasSubstr("at a vote of mask 0xffffffff"));
  EXPECT_THAT(Problem(OtherPlace, 32), AllOf(HasSubstr("thread (0, 0, 0)"), HasSubstr("thread (1, 0, 0)")));
  EXPECT_THAT(Problem(NotInOwnMask, 1), HasSubstr("thread (0, 0, 0) at a vote"));
  EXPECT_THAT(Problem(WidthOfThree, 32), HasSubstr("the width 3"));
}

TEST(Launches, OutOfRangeShapesAreRefused) {
  std::vector<int> out(1024);
  for (const LaunchShape& shape : {LaunchShape{.block_x = 1025},
                                   {.block_x = 0},
                                   {.block_x = 33, .block_y = 32},
                                   {.grid_x = 0},
                                   {.grid_x = 1u << 31},
                                   {.grid_y = 65536},
                                   {.grid_z = 65536},
                                   {.grid_z = 0},
                                   {.shared_bytes = (227 << 10) + 1}}) {
    EXPECT_EQ(Launch(WriteIndices, shape, nullptr, out.data()), emulation::kInvalidConfiguration);
    EXPECT_THAT(LastMessage(), HasSubstr("WriteIndices: cannot be launched with "));
  }
  EXPECT_EQ(Launch(WriteIndices, {.block_x = 1024, .shared_bytes = 227 << 10}, nullptr, out.data()), 0);
}

// Each thread of the host has blocks of its own.
TEST(Launches, ThreadsOfTheHostDoNotMeet) {
  std::vector<std::thread> hosts;
  for (int i = 0; i < 4; ++i) {
    hosts.emplace_back([] {
      for (int round = 0; round < 10; ++round) CheckReduce<256>();
    });
  }
  for (std::thread& host : hosts) host.join();
}

template <typename T>
std::vector<T> RoundTrip(const std::vector<float>& values) {
  std::vector<T> result;
  for (float value : values) result.push_back(FromFloat<T>(value));
  return result;
}

TEST(Elements, RoundToNearestEven) {
  const std::vector<float> values = {1.0f, 1.00390625f, 1.01171875f, -65520.0f, 1e-8f, INFINITY};
  std::vector<uint16_t> bf16, f16;
  for (BF16 x : RoundTrip<BF16>(values)) bf16.push_back(x.bits);
  for (F16 x : RoundTrip<F16>(values)) f16.push_back(x.bits);
  EXPECT_EQ(bf16, (std::vector<uint16_t>{0x3F80, 0x3F80, 0x3F82, 0xC780, 0x322C, 0x7F80}));
  EXPECT_EQ(f16, (std::vector<uint16_t>{0x3C00, 0x3C04, 0x3C0C, 0xFC00, 0x0000, 0x7C00}));
}

}  // namespace
}  // namespace ft::cuda
