#include "runtime/executor/choose_token.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace ft {
namespace {

TEST(ChooseTokenTest, TheLikeliestIsTheFirstOfTheLargest) {
  const std::vector<float> logits = {-1, 3, 2, 3};
  EXPECT_EQ(*ChooseToken(logits, {}, 0, 0), 1);
  EXPECT_EQ(*ChooseToken(logits, {.temperature = 1, .top_k = 1}, 0, 5), 1);
}

// Shares of 40000 draws, each at a place of its own, against the softmax: five standard deviations.
TEST(ChooseTokenTest, DrawsFollowTheSoftmax) {
  const std::vector<float> logits = {0.5f, -1.0f, 2.0f, 1.0f, -std::numeric_limits<float>::infinity()};
  constexpr int kDraws = 40000;
  for (const double temperature : {0.5, 1.0, 3.0}) {
    for (const int64_t top_k : {int64_t{0}, int64_t{3}}) {
      std::vector<double> shares(logits.size(), 0);
      double sum = 0;
      for (size_t i = 0; i < logits.size(); ++i) {
        if (top_k == 3 && (i == 1 || i == 4)) continue;
        sum += shares[i] = std::exp(static_cast<double>(logits[i]) / temperature);
      }
      std::vector<int> counts(logits.size(), 0);
      for (int64_t place = 0; place < kDraws; ++place)
        ++counts[static_cast<size_t>(
            *ChooseToken(logits, {.temperature = temperature, .top_k = top_k, .seed = 3}, 0, place))];
      for (size_t i = 0; i < logits.size(); ++i) {
        const double p = shares[i] / sum;
        EXPECT_NEAR(counts[i], kDraws * p, 5 * std::sqrt(kDraws * p * (1 - p))) << i << " at " << temperature;
      }
    }
  }
}

TEST(ChooseTokenTest, DrawsAreOfTheSeedTheTextAndThePlace) {
  const std::vector<float> logits(1000, 0.0f);
  const auto draw = [&](uint64_t seed, uint32_t text, int64_t place) {
    return *ChooseToken(logits, {.temperature = 1, .seed = seed}, text, place);
  };
  EXPECT_EQ(draw(1, 2, 3), draw(1, 2, 3));
  EXPECT_NE(draw(1, 2, 3), draw(2, 2, 3));
  EXPECT_NE(draw(1, 2, 3), draw(1, 3, 3));
  EXPECT_NE(draw(1, 2, 3), draw(1, 2, 4));
}

TEST(ChooseTokenTest, LogitsThatAreNoNumbersAreRefused) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  for (const std::vector<float>& logits : {std::vector<float>{1, nan}, {nan, 1}, {1, inf}, {-inf, -inf}, {}})
    EXPECT_FALSE(ChooseToken(logits, {}, 0, 0).ok());
  EXPECT_EQ(*ChooseToken(std::vector<float>{-inf, 1}, {}, 0, 0), 1);
}

}  // namespace
}  // namespace ft
