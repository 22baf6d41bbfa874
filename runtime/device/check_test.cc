#include "runtime/device/check.h"

#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/match.h"
#include "runtime/base/checked.h"
#include "runtime/device/attention_heads.h"
#include "runtime/device/parameter_operands.h"
#include "runtime/device/rope_operands.h"

namespace ft {
namespace {

constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
constexpr int64_t kThird = 6148914691236517206;  // (2^64 + 2) / 3

KernelAttributes Attributes(std::vector<std::pair<std::string, KernelAttributes::Value>> entries) {
  KernelAttributes attributes;
  for (auto& [name, value] : entries) attributes.Add(name, std::move(value));
  return attributes;
}

template <typename Result>
void ExpectRefused(const Result& result, const std::string& word) {
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument) << word;
  EXPECT_TRUE(absl::StrContains(result.status().message(), word)) << result.status() << " has no " << word;
}

// Addresses are not looked at.
Tensor Of(std::vector<int64_t> dims, DType dtype = DType::kF32) {
  static char data[64];
  Tensor tensor;
  tensor.data = data;
  tensor.dtype = dtype;
  tensor.rank = static_cast<int>(dims.size());
  std::copy(dims.begin(), dims.end(), tensor.dims.begin());
  return tensor;
}

TEST(CheckTest, IntegersAreBoundedBeforeTheyAreUsed) {
  for (const int64_t value : {int64_t{1}, int64_t{7}})
    EXPECT_EQ(*IntIn(Attributes({{"heads", value}}), "heads", 1, 7), value);
  for (const int64_t value : {int64_t{0}, int64_t{8}, int64_t{-1}, kLargest, -kLargest - 1, kThird})
    ExpectRefused(IntIn(Attributes({{"heads", value}}), "heads", 1, 7),
                  "attribute 'heads' must be 1 to 7, got");
  ExpectRefused(IntIn(Attributes({{"heads", 1.0}}), "heads", 1, 7), "an integer");
  ExpectRefused(IntIn(Attributes({}), "heads", 1, 7), "missing");
  EXPECT_FALSE(*Flag(Attributes({}), "causal"));
  EXPECT_TRUE(*Flag(Attributes({{"causal", int64_t{1}}}), "causal"));
  ExpectRefused(Flag(Attributes({{"causal", int64_t{2}}}), "causal"), "0 to 1");
}

TEST(CheckTest, RealsAreFinite) {
  EXPECT_EQ(*FloatIn(Attributes({{"eps", 1e-5}}), "eps"), 1e-5);
  for (const double value : {double(NAN), double(INFINITY), -double(INFINITY), 1e300})
    ExpectRefused(FloatIn(Attributes({{"eps", value}}), "eps"), "finite");
  ExpectRefused(FloatIn(Attributes({{"eps", -1.0}}), "eps", 0.0), "'eps' must be 0 to");
}

TEST(CheckTest, AFillFitsItsType) {
  const auto fill = [](double value, DType dtype) {
    return FillValue(Attributes({{"value", value}}), dtype);
  };
  EXPECT_EQ(*fill(-2147483648.0, DType::kI32), -2147483648.0);
  EXPECT_EQ(*fill(0.5, DType::kBF16), 0.5);
  ExpectRefused(fill(2147483648.0, DType::kI32), "'value' must be");
  ExpectRefused(fill(256.0, DType::kU8), "'value' must be");
  ExpectRefused(fill(-1.0, DType::kU8), "'value' must be");
  ExpectRefused(fill(1e19, DType::kI64), "'value' must be");
  ExpectRefused(fill(0.5, DType::kI64), "cannot hold");
}

TEST(CheckTest, SegmentsLieInAUnit) {
  const auto read = [](std::vector<int64_t> segments) {
    return Segments(Attributes({{"segments", segments}}), 2);
  };
  EXPECT_TRUE(read({0, 4, 4, 9}).ok());
  EXPECT_TRUE(read({}).ok());
  ExpectRefused(read({0, 4, 8}), "2 numbers");
  ExpectRefused(read({-1, 4}), "ascending");
  ExpectRefused(read({4, 3}), "ascending");
  ExpectRefused(read({0, 5, 4, 9}), "ascending");
  ExpectRefused(read({0, kLargest}), "behind");
  ExpectRefused(read({-kLargest - 1, kLargest}), "ascending");
}

TEST(CheckTest, WorkspacesAreAligned) {
  alignas(64) static char data[128];
  KernelOperands operands;
  operands.workspace = {.data = data, .dtype = DType::kU8, .rank = 1, .dims = {64}};
  EXPECT_TRUE(CheckWorkspace(operands, 64).ok());
  EXPECT_FALSE(CheckWorkspace(operands, 65).ok());
  EXPECT_FALSE(CheckWorkspace(operands, kTooLarge).ok());
  operands.workspace.data = data + 8;
  EXPECT_FALSE(CheckWorkspace(operands, 64).ok());
  EXPECT_TRUE(CheckWorkspace(operands, 0).ok());
}

TEST(CheckTest, OptionalOperandsOfAttention) {
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
TEST(CheckTest, HeadsDoNotWrapRound) {
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

TEST(CheckTest, InitialValuesLieInTheSlice) {
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
