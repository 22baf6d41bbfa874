#include "runtime/kernels/attention/operands.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/device/testing/made_operands.h"
#include "runtime/kernels/random/operands.h"
#include "runtime/kernels/rotary_table/operands.h"

namespace ft {
namespace {

using made::Attributes;
using made::ExpectRefused;
using made::Of;

constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
constexpr int64_t kThird = 6148914691236517206;  // (2^64 + 2) / 3

TEST(OperandsTest, OptionalOperandsOfAttention) {
  using enum AttentionInputs;
  const Tensor qkv = Of({2, 4, 6}), out = Of({2, 4, 2}), lse = Of({2, 1, 4});
  const Tensor lengths = Of({2}, DType::kI32), segments = Of({2, 4}, DType::kI32), rng = Of({3}, DType::kI64);
  const auto read = [&](const Tensor& n, const Tensor& ids, const Tensor& numbers, double rate,
                        int64_t stream) {
    return ReadAttention(
        {{qkv, n, ids, numbers}, {out, lse}, {}},
        Attributes({{"heads", int64_t{1}}, {"kv_heads", int64_t{1}}, {"rate", rate}, {"stream", stream}}),
        kSideBySide);
  };
  const absl::StatusOr<AttentionForward> all = read(lengths, segments, rng, 0.25, 3);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->heads.lengths, lengths.data);
  EXPECT_EQ(all->heads.segments, segments.data);
  EXPECT_EQ(all->heads.dropout.rng, rng.data);
  EXPECT_EQ(all->heads.dropout.threshold, 1u << 22);
  EXPECT_TRUE(read({}, {}, {}, 2.0, -1).ok()) << "nothing is drawn";
  ExpectRefused(read(segments, {}, {}, 0, 0), "lengths");
  ExpectRefused(read(Of({2}), {}, {}, 0, 0), "lengths");
  ExpectRefused(read({}, lengths, {}, 0, 0), "segments");
  ExpectRefused(read({}, {}, segments, 0.5, 0), "rng");
  ExpectRefused(read({}, {}, rng, 1.0, 0), "'rate'");
  ExpectRefused(read({}, {}, rng, std::nan(""), 0), "'rate'");
  ExpectRefused(read({}, {}, rng, 0.5, -1), "'stream'");
}

// heads + 2 * kv_heads and 2 * heads wrapped round to sizes that fit.
TEST(OperandsTest, HeadsDoNotWrapRound) {
  using enum AttentionInputs;
  const Tensor qkv = Of({1, 4, 6}), out = Of({1, 4, 2}), lse = Of({1, 1, 4});
  for (const int64_t heads : {kThird, kLargest, -kThird, int64_t{0}, int64_t{1} << 62, int64_t{1} << 32}) {
    const KernelAttributes attributes = Attributes({{"heads", heads}, {"kv_heads", heads}});
    ExpectRefused(ReadAttention({{qkv, {}, {}, {}}, {out, lse}, {}}, attributes, kSideBySide), "'heads'");
    ExpectRefused(ReadAttention({{out, out, out, {}, {}, {}}, {out, lse}, {}}, attributes, kSeparate),
                  "'heads'");
    ExpectRefused(ReadAttentionGrad({{out, qkv, out, lse, {}, {}, {}}, {qkv}, {}}, attributes, kSideBySide),
                  "'heads'");
  }
}

TEST(OperandsTest, RotaryTablesAreOfOneShape) {
  const Tensor table = Of({4, 2});
  const auto read = [&](const Tensor& sine, double base) {
    return ReadRotaryTable({{}, {table, sine}, {}}, Attributes({{"base", base}}));
  };
  EXPECT_TRUE(read(table, 1e4).ok());
  ExpectRefused(read(table, 0.0), "'base'");
  ExpectRefused(read(Of({4, 3}), 1e4), "sine");
}

TEST(OperandsTest, InitialValuesLieInTheSlice) {
  const Tensor rng = Of({3}, DType::kI64);
  Tensor slice = Of({100});
  slice.flat_begin = 1024;
  const std::vector<ParameterRange> parameters = {{.begin = 0, .end = 1000, .number = 5},
                                                  {.begin = 1024, .end = 1060, .number = 7},
                                                  {.begin = 1100, .end = 4000, .number = 2}};
  const auto read = [&](int64_t parameter) {
    return ReadInitialValues({{rng}, {slice}, {}}, Attributes({{"parameter", parameter}, {"value", 0.5}}));
  };
  ExpectRefused(read(7), "slice is no flat buffer of a unit");
  slice.parameters = parameters;
  const auto expect = [&](int64_t parameter, int64_t begin, int64_t end, int64_t first) {
    const absl::StatusOr<InitialValues> part = read(parameter);
    ASSERT_TRUE(part.ok()) << part.status();
    EXPECT_EQ(part->begin, begin);
    EXPECT_EQ(part->end, end);
    if (begin < end) {
      EXPECT_EQ(part->first, first);
    }
    EXPECT_EQ(part->stream, parameter);
  };
  expect(5, 0, 0, 0);
  expect(7, 0, 36, 0);
  expect(2, 76, 100, 0);
  slice.flat_begin = 2000;
  expect(2, 0, 100, 900);
  ExpectRefused(read(6), "parameter 6 is in another unit");
  for (const int64_t none : {int64_t{-1}, kLargest}) ExpectRefused(read(none), "'parameter'");
}

}  // namespace
}  // namespace ft
