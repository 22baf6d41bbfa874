// The device's sum over ranks, through the emulation of CUDA, against the host's, bit by bit.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "runtime/backends/cuda/device_code/gpu.h"
#include "runtime/base/round_float.h"
#include "runtime/collective/tree_sum.h"
#include "runtime/kernels/rank_sum/cuda_device.h"

namespace ft::cuda {
namespace {

using Bytes = std::vector<std::byte>;

// All magnitudes, so that every other order of additions gives other bits.
double Value(int rank, size_t i) {
  uint32_t x = static_cast<uint32_t>(i) * 2654435761u + static_cast<uint32_t>(rank) * 40503u + 12345u;
  x ^= x >> 15, x *= 2246822519u, x ^= x >> 13;
  return (static_cast<double>(x & 0xFFFF) - 32768.0) * std::ldexp(1.0, static_cast<int>(x >> 16 & 15) - 20);
}

void Put(DType dtype, double value, std::byte* to) {
  const auto put = [&](auto typed) { std::memcpy(to, &typed, sizeof(typed)); };
  if (dtype == DType::kF32) put(static_cast<float>(value));
  if (dtype == DType::kBF16) put(RoundToBF16(static_cast<float>(value)));
  if (dtype == DType::kF16) put(RoundToF16(static_cast<float>(value)));
  if (dtype == DType::kF64) put(value / 3);
  if (dtype == DType::kI32) put(static_cast<int32_t>(value * 65536));
  if (dtype == DType::kI64) put(static_cast<int64_t>(value * 0x1p47));
}

struct Shape {
  size_t count;
  DType dtype;
  size_t shift = 0;  // bytes by which the own summand and the result miss an alignment of 64
};

size_t Padded(size_t bytes) { return (bytes + 63) / 64 * 64; }

// 64-byte aligned.
std::byte* Aligned(Bytes& memory) {
  const auto address = reinterpret_cast<uintptr_t>(memory.data());
  return memory.data() + (Padded(address) - address);
}

// Sums `shapes` as one launch on rank `own` of `ranks`, and compares with TreeSum.
void Check(int ranks, int own, const std::vector<Shape>& shapes, bool in_place) {
  size_t slot = 0;
  for (const Shape& shape : shapes) slot += Padded(shape.count * SizeOf(shape.dtype));
  Bytes staging(slot * static_cast<size_t>(ranks) + 64);
  std::byte* slots = Aligned(staging);
  RankSumArgs args;
  args.slots = slots;
  args.slot_bytes = static_cast<int64_t>(slot);
  args.ranks = ranks;
  args.own_rank = own;
  std::vector<Bytes> owns(shapes.size()), outs(shapes.size()), expected(shapes.size());
  size_t offset = 0;
  for (size_t p = 0; p < shapes.size(); ++p) {
    const Shape& shape = shapes[p];
    const size_t width = SizeOf(shape.dtype), bytes = shape.count * width;
    owns[p].resize(bytes + 128);
    outs[p].resize(bytes + 128, std::byte{0x5A});
    std::byte* own_data = Aligned(owns[p]) + shape.shift;
    std::byte* out_data = in_place ? own_data : Aligned(outs[p]) + shape.shift;
    std::vector<Bytes> summands;
    std::vector<const void*> parts;
    for (int rank = 0; rank < ranks; ++rank) {
      Bytes& summand = summands.emplace_back(bytes);
      for (size_t i = 0; i < shape.count; ++i)
        Put(shape.dtype, Value(rank, i + 1000 * p), &summand[i * width]);
      // What lies in the own slot must not be read.
      std::byte* place = slots + static_cast<size_t>(rank) * slot + offset;
      if (rank == own) {
        std::copy(summand.begin(), summand.end(), own_data);
        std::memset(place, 0x7F, bytes);
      } else {
        std::copy(summand.begin(), summand.end(), place);
      }
    }
    for (const Bytes& summand : summands) parts.push_back(summand.data());
    expected[p].resize(bytes);
    TreeSum(parts, shape.count, shape.dtype, expected[p].data());
    args.pieces[args.num_pieces++] = {own_data, out_data, static_cast<int64_t>(offset),
                                      static_cast<int64_t>(shape.count), shape.dtype};
    offset += Padded(bytes);
  }
  ASSERT_EQ(RankSum(args, nullptr), 0) << emulation::LastMessage();
  for (size_t p = 0; p < shapes.size(); ++p) {
    const auto* out = static_cast<const std::byte*>(args.pieces[p].out);
    ASSERT_EQ(std::memcmp(out, expected[p].data(), expected[p].size()), 0)
        << "piece " << p << " of " << Name(shapes[p].dtype) << ", " << ranks << " ranks";
    if (!in_place) {
      ASSERT_EQ(out[expected[p].size()], std::byte{0x5A}) << "wrote behind the end";
    }
  }
}

const std::vector<Shape> kEveryType = {{1037, DType::kF32}, {2051, DType::kBF16}, {777, DType::kF16},
                                       {515, DType::kF64},  {1030, DType::kI32},  {259, DType::kI64},
                                       {1, DType::kF32},    {7, DType::kBF16},    {8, DType::kF16}};

TEST(RankSumTest, HasTheBitsOfTheTreeForEveryNumberOfRanks) {
  for (int ranks = 1; ranks <= 20; ++ranks) Check(ranks, ranks / 2, kEveryType, false);
  for (const int ranks : {31, 32, 33, 63, 64, 65, 127, 200, 259}) {
    Check(ranks, ranks - 1, {{33, DType::kF32}, {67, DType::kBF16}}, false);
  }
}

TEST(RankSumTest, WhicheverRankItIsAndInPlace) {
  for (int own = 0; own < 7; ++own) {
    Check(7, own, kEveryType, true);
    Check(7, own, kEveryType, false);
  }
}

TEST(RankSumTest, OddAddresses) {
  Check(5, 2, {{1030, DType::kF32, 4}, {1030, DType::kBF16, 2}, {515, DType::kF16, 6}, {130, DType::kI64, 8}},
        false);
  Check(3, 0, {{1030, DType::kF32, 12}, {99, DType::kBF16, 10}}, true);
}

TEST(RankSumTest, MoreElementsThanTheLargestGridAndMorePiecesThanOneType) {
  Check(2, 1, {{(2048 * 256 * 4) + 1029, DType::kF32}}, false);
  std::vector<Shape> many;
  for (int i = 0; i < kMaxRankSumPieces; ++i)
    many.push_back({static_cast<size_t>(i * 13 % 50), i % 3 == 0 ? DType::kF32 : DType::kBF16});
  Check(4, 3, many, false);
}

TEST(RankSumTest, RefusesWhatItCannotDo) {
  RankSumArgs args;
  args.num_pieces = 1;
  args.pieces[0].dtype = DType::kU8;
  args.pieces[0].count = 1;
  EXPECT_NE(RankSum(args, nullptr), 0);
  args.pieces[0].dtype = DType::kF32;
  args.ranks = kMaxRankSumRanks + 1;
  EXPECT_NE(RankSum(args, nullptr), 0);
  args.ranks = 0;
  EXPECT_NE(RankSum(args, nullptr), 0);
}

}  // namespace
}  // namespace ft::cuda
