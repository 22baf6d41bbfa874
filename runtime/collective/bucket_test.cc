// Groups of ranks, 16-bit sums and buckets: every backend against one reference, bit by bit.
#include "runtime/collective/rounds/bucket.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "absl/time/clock.h"
#include "runtime/collective/create.h"
#include "runtime/collective/testing/any_backend.h"
#include "runtime/collective/testing/test_world.h"

namespace ft {
namespace {

using testing::TestWorld;
using Bytes = std::vector<std::byte>;

CommunicatorOptions With(CollectiveBackend backend) {
  CommunicatorOptions options;
  options.backend = backend;
  options.timeout = absl::Seconds(30);
  return options;
}

uint32_t Mix(uint32_t rank, uint32_t part, uint32_t i) {
  uint32_t x = i * 2654435761u + rank * 40503u + part * 97u + 12345u;
  x ^= x >> 15, x *= 2246822519u, x ^= x >> 13;
  return x;
}

// What rank `rank` of the run holds at index i of a part: magnitudes that make the order of additions
// visible.
float FloatValue(int rank, size_t part, size_t i) {
  const uint32_t x = Mix(static_cast<uint32_t>(rank), static_cast<uint32_t>(part), static_cast<uint32_t>(i));
  return (static_cast<float>(x & 0xFFF) - 2048.0f) * std::ldexp(1.0f, static_cast<int>(x >> 16 & 7) - 10);
}

// To nearest, ties to even, by way of the remainder rather than of a carry as the code under test has it.
uint16_t ToBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t low = bits & 0xFFFF, high = bits >> 16;
  const bool up = low > 0x8000 || (low == 0x8000 && high % 2 == 1);
  return static_cast<uint16_t>(high + (up ? 1 : 0));
}

struct Scalar {
  std::byte bytes[8];
  size_t width;
};

Scalar Encode(DType dtype, double value) {
  Scalar scalar{{}, SizeOf(dtype)};
  const auto put = [&](auto typed) { std::memcpy(scalar.bytes, &typed, sizeof(typed)); };
  if (dtype == DType::kF32) put(static_cast<float>(value));
  if (dtype == DType::kBF16) put(ToBf16(static_cast<float>(value)));
  if (dtype == DType::kF16) put(static_cast<_Float16>(static_cast<float>(value)));
  if (dtype == DType::kI64) put(static_cast<int64_t>(value));
  return scalar;
}

// The value that rank `rank` really holds, rounded to the type.
float Held(DType dtype, int rank, size_t part, size_t i) {
  const float value = FloatValue(rank, part, i);
  if (dtype == DType::kBF16) return std::bit_cast<float>(uint32_t{ToBf16(value)} << 16);
  if (dtype == DType::kF16) return static_cast<float>(static_cast<_Float16>(value));
  if (dtype == DType::kI64) return std::trunc(value);
  return value;
}

// The sum over ranks[first .. first + n), written as the design words it, in fp32.
template <typename Value>
float TreeOf(const std::vector<int>& ranks, size_t first, size_t n, const Value& value) {
  if (n == 1) return value(ranks[first]);
  size_t split = 1;
  while (split * 2 < n) split *= 2;
  const float left = TreeOf(ranks, first, split, value);
  return left + TreeOf(ranks, first + split, n - split, value);
}

// A part of a bucket: elements of each slice, and their type.
struct Shape {
  size_t count;
  DType dtype;
};

Bytes Filled(const Shape& shape, size_t slices, int rank, size_t part) {
  Bytes data;
  data.reserve(shape.count * slices * SizeOf(shape.dtype));
  for (size_t i = 0; i < shape.count * slices; ++i) {
    const Scalar scalar = Encode(shape.dtype, Held(shape.dtype, rank, part, i));
    data.insert(data.end(), scalar.bytes, scalar.bytes + scalar.width);
  }
  return data;
}

Bytes Reduced(const Shape& shape, size_t first, size_t count, const std::vector<int>& ranks, size_t part) {
  Bytes data;
  data.reserve(count * SizeOf(shape.dtype));
  for (size_t i = first; i < first + count; ++i) {
    const float sum = TreeOf(ranks, 0, ranks.size(), [&](int r) { return Held(shape.dtype, r, part, i); });
    const Scalar scalar = Encode(shape.dtype, sum);
    data.insert(data.end(), scalar.bytes, scalar.bytes + scalar.width);
  }
  return data;
}

// Mixed types and sizes: empty ones, one element, around a cache line, and more than a round of any backend
// holds.
const std::vector<Shape> kParts = {{7, DType::kF32},    {0, DType::kF32},      {33, DType::kBF16},
                                   {1, DType::kI64},    {1, DType::kF16},      {90003, DType::kBF16},
                                   {1023, DType::kF16}, {100001, DType::kF32}, {31, DType::kBF16}};
const std::vector<Shape> kSmall = {{1, DType::kF32}, {21, DType::kI64}, {3, DType::kBF16}, {5, DType::kF16}};

// Every collective, with all parts as one bucket, on the communicator over `ranks` of the run.
void CheckBucket(Communicator& comm, const std::vector<int>& ranks, const std::vector<Shape>& shapes) {
  const size_t n = ranks.size();
  const auto own = static_cast<size_t>(comm.rank());
  const int me = ranks[own];
  std::vector<Bytes> slices, wholes, gathered, scattered, reduced;
  std::vector<GatherPart> gathers;
  std::vector<ReducePart> scatters, reductions;
  for (size_t p = 0; p < shapes.size(); ++p) {
    slices.push_back(Filled(shapes[p], 1, me, p));
    wholes.push_back(Filled(shapes[p], n, me, p));
    gathered.emplace_back(wholes[p].size());
    scattered.emplace_back(slices[p].size());
    reduced.push_back(wholes[p]);
  }
  for (size_t p = 0; p < shapes.size(); ++p) {
    gathers.push_back({slices[p].data(), gathered[p].data(), slices[p].size()});
    scatters.push_back({wholes[p].data(), scattered[p].data(), shapes[p].count, shapes[p].dtype});
    reductions.push_back({reduced[p].data(), reduced[p].data(), shapes[p].count * n, shapes[p].dtype});
  }
  ASSERT_TRUE(comm.AllGather(gathers, {"gather bucket", 0}).ok());
  ASSERT_TRUE(comm.ReduceScatter(scatters, {"scatter bucket", 0}).ok());
  ASSERT_TRUE(comm.AllReduce(reductions, {"reduce bucket", 0}).ok());
  for (size_t p = 0; p < shapes.size(); ++p) {
    Bytes all;
    for (const int rank : ranks) {
      const Bytes slice = Filled(shapes[p], 1, rank, p);
      all.insert(all.end(), slice.begin(), slice.end());
    }
    EXPECT_TRUE(gathered[p] == all) << "part " << p;
    const size_t count = shapes[p].count;
    EXPECT_TRUE(scattered[p] == Reduced(shapes[p], own * count, count, ranks, p)) << "part " << p;
    EXPECT_TRUE(reduced[p] == Reduced(shapes[p], 0, n * count, ranks, p)) << "part " << p;
  }
}

// The same in place: the slices lie in the wholes.
void CheckInPlace(Communicator& comm, const std::vector<int>& ranks, const std::vector<Shape>& shapes) {
  const size_t n = ranks.size();
  const auto own = static_cast<size_t>(comm.rank());
  std::vector<Bytes> wholes;
  for (size_t p = 0; p < shapes.size(); ++p) wholes.push_back(Filled(shapes[p], n, ranks[own], p));
  std::vector<GatherPart> gathers;
  std::vector<ReducePart> scatters;
  for (size_t p = 0; p < shapes.size(); ++p) {
    const size_t bytes = wholes[p].size() / n;
    std::byte* slice = wholes[p].data() + own * bytes;
    scatters.push_back({wholes[p].data(), slice, shapes[p].count, shapes[p].dtype});
    gathers.push_back({slice, wholes[p].data(), bytes});
  }
  ASSERT_TRUE(comm.ReduceScatter(scatters, {"scatter in place", 0}).ok());
  ASSERT_TRUE(comm.AllGather(gathers, {"gather in place", 0}).ok());
  for (size_t p = 0; p < shapes.size(); ++p)
    EXPECT_TRUE(wholes[p] == Reduced(shapes[p], 0, n * shapes[p].count, ranks, p)) << "part " << p;
}

// replica x shard
using Grid = std::pair<int, int>;

class GroupTest : public ::testing::TestWithParam<std::tuple<CollectiveBackend, Grid>> {};

TEST_P(GroupTest, EveryGroupReducesAndGathersItsOwn) {
  const auto [backend, grid] = GetParam();
  const auto [replicas, shards] = grid;
  testing::AnyBackend any(backend);
  TestWorld(replicas * shards)
      .RunThreads([&, replicas = replicas, shards = shards](const Rendezvous& rendezvous) {
        const int me = rendezvous.rank();
        std::vector<CommunicatorGroup> groups(3);
        for (int i = 0; i < shards; ++i) groups[0].ranks.push_back(me / shards * shards + i);
        for (int i = 0; i < replicas; ++i) groups[1].ranks.push_back(me % shards + i * shards);
        for (int i = 0; i < replicas * shards; ++i) groups[2].ranks.push_back(i);
        auto communicators = any.Create(rendezvous, groups);
        ASSERT_TRUE(communicators.ok()) << communicators.status();
        for (size_t g = 0; g < groups.size(); ++g) {
          Communicator& comm = *(*communicators)[g];
          ASSERT_EQ(comm.size(), static_cast<int>(groups[g].ranks.size()));
          ASSERT_EQ(groups[g].ranks[static_cast<size_t>(comm.rank())], me);
          EXPECT_EQ(comm.staging_bytes(), any.Staging(comm.size()));
          CheckBucket(comm, groups[g].ranks, kParts);
          CheckBucket(comm, groups[g].ranks, kSmall);
          CheckInPlace(comm, groups[g].ranks, kParts);
          for (const Shape& shape : kSmall) CheckBucket(comm, groups[g].ranks, {shape});
        }
        EXPECT_TRUE(communicators->back()->Barrier({"end", 0}).ok());
      });
}

std::string GridName(const ::testing::TestParamInfo<std::tuple<CollectiveBackend, Grid>>& info) {
  const Grid grid = std::get<1>(info.param);
  return std::string(Name(std::get<0>(info.param))) + "_" + std::to_string(grid.first) + "x" +
         std::to_string(grid.second);
}

INSTANTIATE_TEST_SUITE_P(Local, GroupTest,
                         ::testing::Values(std::make_tuple(CollectiveBackend::kLocal, Grid{1, 1})), GridName);
INSTANTIATE_TEST_SUITE_P(
    Several, GroupTest,
    ::testing::Combine(::testing::Values(CollectiveBackend::kShm, CollectiveBackend::kGloo,
                                         CollectiveBackend::kNccl),
                       ::testing::Values(Grid{2, 2}, Grid{2, 3}, Grid{1, 4}, Grid{3, 1})),
    GridName);

// Messages count ranks as the run does.
TEST(GroupMessagesTest, TheMissingRankIsNamedByItsNumberInTheRun) {
  for (const auto backend : {CollectiveBackend::kShm, CollectiveBackend::kGloo}) {
    TestWorld(4).RunThreads([&](const Rendezvous& rendezvous) {
      CommunicatorOptions options = With(backend);
      options.timeout = absl::Milliseconds(200);
      const int me = rendezvous.rank();
      const std::vector<CommunicatorGroup> groups = {{{me % 2, me % 2 + 2}}};
      auto communicators = CreateCommunicators(rendezvous, groups, options).value();
      float x = 0;
      if (me == 3) {
        absl::SleepFor(absl::Milliseconds(600));  // never comes
        return;
      }
      const absl::Status status = communicators[0]->AllReduce(&x, 1, DType::kF32, {"sum", 1});
      if (me != 1) {
        EXPECT_TRUE(status.ok()) << status;
        return;
      }
      EXPECT_TRUE(absl::IsUnavailable(status)) << status;
      EXPECT_NE(status.message().find("waiting for rank 3 (pid "), std::string::npos) << status;
    });
  }
}

TEST(GroupMessagesTest, BucketsOfOneLengthButOtherPartsAreToldApart) {
  TestWorld(2).RunThreads([](const Rendezvous& rendezvous) {
    auto communicators = CreateCommunicators(rendezvous, 1, With(CollectiveBackend::kShm)).value();
    std::vector<float> data(64);
    const DType mine = rendezvous.rank() == 0 ? DType::kF32 : DType::kI32;
    const ReducePart part{data.data(), data.data(), 64, mine};
    const absl::Status status = communicators[0]->AllReduce(absl::MakeConstSpan(&part, 1), {"sum", 1});
    EXPECT_TRUE(absl::IsInternal(status)) << status;
    EXPECT_NE(status.message().find("rank 0 (pid"), std::string::npos) << status;
    EXPECT_NE(status.message().find("rank 1 (pid"), std::string::npos) << status;
  });
}

TEST(GroupMessagesTest, ARankOutsideOfItsGroupIsAnError) {
  TestWorld(2).RunThreads([](const Rendezvous& rendezvous) {
    const std::vector<CommunicatorGroup> groups = {{{1 - rendezvous.rank()}}};
    EXPECT_TRUE(absl::IsInternal(CreateCommunicators(rendezvous, groups, {}).status()));
  });
}

TEST(BucketTest, PiecesCoverEveryPartOnceAndBeginAtLines) {
  std::vector<std::byte> memory(1000);
  const std::vector<GatherPart> parts = {{memory.data(), memory.data(), 70},
                                         {memory.data(), memory.data(), 0},
                                         {memory.data(), memory.data(), 64},
                                         {memory.data(), memory.data(), 1}};
  const absl::Span<const GatherPart> span(parts);
  EXPECT_EQ(BucketBytes(span), 128u + 64 + 1);
  std::vector<size_t> seen(parts.size());
  for (size_t begin = 0; begin < BucketBytes(span); begin += 64) {
    ForEachPiece(span, begin, begin + 64, [&](const GatherPart& part, size_t at, size_t behind, size_t n) {
      const auto index = static_cast<size_t>(&part - parts.data());
      EXPECT_EQ(at, seen[index]);
      EXPECT_EQ(at % 64, behind);
      seen[index] += n;
    });
  }
  EXPECT_EQ(seen, (std::vector<size_t>{70, 0, 64, 1}));
  EXPECT_EQ(BucketBytes(absl::Span<const GatherPart>()), 0u);
}

}  // namespace
}  // namespace ft
