#include "tools/ftckpt/comparison.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>

namespace ft::ckpt {
namespace {

class MadeSide : public TensorSide {
 public:
  explicit MadeSide(bool is_checkpoint, std::string tied_head = "") {
    is_checkpoint_ = is_checkpoint;
    tied_head_ = std::move(tied_head);
  }
  MadeSide& Add(const std::string& name, std::vector<float> values = {0}, bool of_optimizer = false) {
    tensors_.push_back(
        {name, {static_cast<int64_t>(values.size())}, SafetensorsDType::kF32, values.size(), of_optimizer});
    values_.push_back(std::move(values));
    return *this;
  }
  absl::Status Read(size_t tensor, uint64_t first, uint64_t count, void* out) override {
    std::memcpy(out, values_[tensor].data() + first, count * sizeof(float));
    return absl::OkStatus();
  }

 private:
  std::vector<std::vector<float>> values_;
};

TEST(PairTensorsTest, KnowsNamesWithAndWithoutPrefix) {
  MadeSide a(true), b(false);
  a.Add("transformer.wte.weight").Add("exp_avg/transformer.wte.weight", {0}, true).Add("transformer.gone");
  b.Add("wte.weight").Add("h.0.attn.bias").Add("new.weight");
  for (const bool swapped : {false, true}) {
    const Pairing pairing = swapped ? PairTensors(b, a) : PairTensors(a, b);
    ASSERT_EQ(pairing.pairs.size(), 1u) << swapped;
    EXPECT_EQ(pairing.pairs[0], (std::pair<size_t, size_t>(0, 0)));
    EXPECT_EQ(pairing.only_a.size(), 1u);
    EXPECT_EQ(pairing.only_b.size(), 1u);
    EXPECT_EQ(pairing.left_out, 2u);
  }
}

TEST(PairTensorsTest, ComparesATiedHeadWithTheEmbedding) {
  MadeSide a(true, "transformer.wte.weight"), b(false);
  a.Add("transformer.wte.weight");
  b.Add("transformer.wte.weight").Add("lm_head.weight");
  EXPECT_EQ(PairTensors(a, b).pairs.size(), 2u);
  EXPECT_EQ(PairTensors(b, a).pairs.size(), 2u);
  MadeSide untied(true);
  untied.Add("transformer.wte.weight");
  EXPECT_EQ(PairTensors(untied, b).only_b.size(), 1u);
}

TEST(PairTensorsTest, BetweenCheckpointsEverythingCounts) {
  MadeSide a(true), b(true);
  a.Add("w").Add("exp_avg/w", {0}, true);
  b.Add("w");
  EXPECT_EQ(PairTensors(a, b).only_a.size(), 1u);
}

TensorDifference Compare(std::vector<float> x, std::vector<float> y) {
  MadeSide a(true), b(true);
  a.Add("w", std::move(x));
  b.Add("w", std::move(y));
  return CompareTensors(a, 0, b, 0).value();
}

TEST(CompareTensorsTest, CountsAndMeasures) {
  const TensorDifference difference = Compare({1, 2, -4, 8}, {1, 3, -4, 6});
  EXPECT_EQ(difference.differing, 2u);
  EXPECT_EQ(difference.absolute, 2);
  EXPECT_DOUBLE_EQ(difference.relative, 1.0 / 3);
  EXPECT_FALSE(Compare({1, 2}, {1}).same_shape);
}

TEST(CompareTensorsTest, FindsTheLastOfManyElements) {
  std::vector<float> a(600'001, 1), b = a;
  b.back() = 2;
  EXPECT_EQ(Compare(a, b).differing, 1u);
}

TEST(CompareTensorsTest, NoNumbersAndInfinities) {
  const float nan = std::nanf(""), infinity = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(Compare({nan, infinity}, {nan, infinity}).equal());
  EXPECT_TRUE(std::isnan(Compare({1, nan, 5}, {2, 1, 5}).absolute));
  EXPECT_TRUE(std::isinf(Compare({1, infinity}, {1, 3}).absolute));
  EXPECT_EQ(Compare({infinity}, {3}).relative, 1);
  const TensorDifference zeros = Compare({0.0f}, {-0.0f});
  EXPECT_EQ(zeros.differing, 1u);
  EXPECT_EQ(zeros.absolute, 0);
}

}  // namespace
}  // namespace ft::ckpt
