// The watch over races: which accesses it calls ordered, and that it finds what is not. Compiled as the
// device code is that it watches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/backends/cuda/device_code/element.h"
#include "runtime/backends/cuda/device_code/reduce.h"
#include "test/doubles/cuda/launch.h"

namespace ft::cuda {
namespace {

using emulation::LastMessage;
using emulation::Order;
using testing::AllOf;
using testing::HasSubstr;

constexpr int kThreads = 64;

enum class Between { kNothing, kShuffle, kSyncWarp, kPartOfWarp, kSyncThreads };

__device__ void Pass(Between between) {
  if (between == Between::kShuffle) __shfl_sync(kAllLanes, 1, 0);
  if (between == Between::kSyncWarp) __syncwarp();
  if (between == Between::kPartOfWarp) __syncwarp(threadIdx.x % 32 < 16 ? 0x0000FFFFu : 0xFFFF0000u);
  if (between == Between::kSyncThreads) __syncthreads();
}

// Each thread writes a word and reads that of the thread `away` from it.
__global__ void WriteThenRead(int* out, int away, Between between, bool dynamic) {
  __shared__ int fixed[kThreads];
  int* words = dynamic ? DynamicShared<int>() : fixed;
  const int i = static_cast<int>(threadIdx.x);
  words[i] = i;
  Pass(between);
  out[i] = words[i ^ away];
}

__global__ void ReadThenWrite(int* out, int away, Between between) {
  __shared__ int words[kThreads];
  const int i = static_cast<int>(threadIdx.x);
  words[i] = i;
  __syncthreads();
  out[i] = words[i ^ away];
  Pass(between);
  words[i] = -i;
}

class Races : public testing::TestWithParam<Order> {
 protected:
  void SetUp() override { emulation::SetOrder(GetParam()); }
  void TearDown() override { emulation::SetOrder(Order::kAscending); }
};

INSTANTIATE_TEST_SUITE_P(Orders, Races, testing::Values(Order::kAscending, Order::kDescending),
                         [](const auto& info) {
                           return info.param == Order::kAscending ? "Ascending" : "Descending";
                         });

// "" for a launch that succeeds.
template <typename... Parameters, typename... Arguments>
std::string Problem(void (*kernel)(Parameters...), unsigned blocks, const Arguments&... arguments) {
  const LaunchShape shape = {.grid_x = blocks, .block_x = kThreads, .shared_bytes = kThreads * sizeof(int)};
  return Launch(kernel, shape, nullptr, arguments...) == 0 ? "" : LastMessage();
}

TEST_P(Races, OfWritesAndLaterReads) {
  std::vector<int> out(kThreads);
  for (bool dynamic : {false, true}) {
    const auto problem = [&](int away, Between between) {
      return Problem(WriteThenRead, 2, out.data(), away, between, dynamic);
    };
    for (Between between : {Between::kNothing, Between::kShuffle, Between::kPartOfWarp}) {
      EXPECT_EQ(problem(0, between).find("shared memory"), std::string::npos);
      EXPECT_THAT(problem(1, between),
                  AllOf(HasSubstr("::WriteThenRead, block ("), HasSubstr("a race in shared memory: thread ("),
                        HasSubstr("another lane of the warp, with no __syncwarp between")));
      EXPECT_THAT(problem(32, between), HasSubstr("another warp, with no __syncthreads between"));
    }
    EXPECT_EQ(problem(1, Between::kSyncWarp).find("shared memory"), std::string::npos);
    EXPECT_THAT(problem(32, Between::kSyncWarp), HasSubstr("another warp"));
    // The blocks write the same results: a race as well, but of global memory.
    EXPECT_THAT(problem(33, Between::kSyncThreads),
                AllOf(HasSubstr("global memory"),
                      HasSubstr("writes what was written by another block of the launch")));
  }
}

TEST_P(Races, OfReadsAndLaterWrites) {
  std::vector<int> out(kThreads);
  const auto problem = [&](int away, Between between) {
    return Problem(ReadThenWrite, 1, out.data(), away, between);
  };
  EXPECT_EQ(problem(0, Between::kNothing), "");
  EXPECT_THAT(problem(1, Between::kNothing), AllOf(HasSubstr("shared memory"), HasSubstr("another lane")));
  EXPECT_EQ(problem(1, Between::kSyncWarp), "");
  EXPECT_THAT(problem(32, Between::kSyncWarp), HasSubstr("another warp"));
  EXPECT_EQ(problem(33, Between::kSyncThreads), "");
}

// Of a warp, some lanes read, then one of them writes.
__global__ void ManyRead(int* words, bool ordered) {
  const int value = words[0];
  if (ordered) __syncwarp();
  if (threadIdx.x == 7) words[0] = value + 1;
}

// A block's first thread writes what the next block's reads.
__global__ void Neighbours(int* words) {
  if (threadIdx.x == 0) words[blockIdx.x] = words[blockIdx.x + 1];
}

__global__ void AddUp(int* sum, int* out, Between between) {
  atomicAdd(sum, 1);
  Pass(between);
  if (threadIdx.x == 0) out[blockIdx.x] = *sum;
}

__global__ void Halves(uint16_t* to) { to[threadIdx.x + blockIdx.x * kThreads] = 1; }

TEST_P(Races, OfGlobalMemory) {
  std::vector<int> words(kThreads), out(2);
  const LaunchShape warp = {.block_x = 32};
  EXPECT_EQ(Launch(ManyRead, warp, nullptr, words.data(), true), 0);
  EXPECT_NE(Launch(ManyRead, warp, nullptr, words.data(), false), 0);
  EXPECT_THAT(LastMessage(), HasSubstr("another lane"));
  EXPECT_THAT(Problem(Neighbours, 3, words.data()), HasSubstr("another block of the launch"));
  EXPECT_EQ(Problem(Neighbours, 1, words.data()), "");
  std::vector<uint16_t> halves(3 * kThreads);  // two of each word are different threads'
  EXPECT_EQ(Problem(Halves, 3, halves.data()), "");
}

TEST_P(Races, OfAtomicOperations) {
  int sum = 0;
  std::vector<int> out(2);
  EXPECT_EQ(Problem(AddUp, 1, &sum, out.data(), Between::kSyncThreads), "");
  EXPECT_EQ(out[0], kThreads);
  EXPECT_THAT(Problem(AddUp, 1, &sum, out.data(), Between::kSyncWarp),
              AllOf(HasSubstr("global memory"), HasSubstr("another warp")));
  EXPECT_THAT(Problem(AddUp, 2, &sum, out.data(), Between::kSyncThreads), HasSubstr("another block"));
}

template <int kBlock>
__global__ void SumTwice(float* out) {
  const float value = static_cast<float>(threadIdx.x);
  const float sum = BlockReduce<Sum, kBlock>(value);
  out[threadIdx.x] = BlockReduce<Sum, kBlock>(value + sum);
}

TEST_P(Races, NoneInReductions) {
  std::vector<float> out(1024);
  EXPECT_EQ(Launch(SumTwice<64>, {.block_x = 64}, nullptr, out.data()), 0) << LastMessage();
  EXPECT_EQ(Launch(SumTwice<1024>, {.block_x = 1024}, nullptr, out.data()), 0) << LastMessage();
}

// What one launch left is no race with the next.
TEST_P(Races, LaunchesFollowEachOther) {
  std::vector<uint16_t> halves(2 * kThreads);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Problem(Halves, 2, halves.data()), "");
}

}  // namespace
}  // namespace ft::cuda
