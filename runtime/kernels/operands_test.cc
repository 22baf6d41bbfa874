#include "runtime/kernels/attention/operands.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/device/testing/made_operands.h"
#include "runtime/kernels/random/operands.h"
#include "runtime/kernels/rope/operands.h"

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
    ExpectRefused(ReadRope({{qkv}, {qkv}, {}}, Attributes({{"heads", heads}, {"base", 1e4}})), "'heads'");
  }
  EXPECT_TRUE(ReadRope({{qkv}, {qkv}, {}}, Attributes({{"heads", int64_t{3}}, {"base", 1e4}})).ok());
  ExpectRefused(ReadRope({{qkv}, {qkv}, {}}, Attributes({{"heads", int64_t{3}}, {"base", 0.0}})), "'base'");
}

TEST(OperandsTest, InitialValuesLieInTheSlice) {
  const Tensor rng = Of({3}, DType::kI64);
  Tensor slice = Of({100});
  slice.flat_begin = 1024;
  const auto read = [&](int64_t begin, int64_t end) {
    return ReadInitialValues({{rng}, {slice}, {}},
                             Attributes({{"begin", begin}, {"end", end}, {"value", 0.5}}));
  };
  const absl::StatusOr<InitialValues> part = read(1000, 1060);
  ASSERT_TRUE(part.ok()) << part.status();
  EXPECT_EQ(part->begin, 0);
  EXPECT_EQ(part->end, 36);
  EXPECT_EQ(part->first, 24);
  ExpectRefused(read(-kLargest - 1, 10), "'begin'");
  ExpectRefused(read(0, kLargest), "'end'");
  ExpectRefused(read(10, 5), "'end'");
}

}  // namespace
}  // namespace ft
