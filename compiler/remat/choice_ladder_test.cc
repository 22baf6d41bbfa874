#include "compiler/remat/choice_ladder.h"

#include <gtest/gtest.h>

#include <random>

namespace ft::compiler {
namespace {

// Every assignment of a chain, one by one.
std::optional<double> cheapestByTryingAll(const std::vector<ChainLayer> &chain, int64_t limit,
                                          size_t layer = 0, uint64_t saved = 0) {
  if (layer == chain.size())
    return 0;
  std::optional<double> best;
  for (const ChainOption &option : chain[layer].options) {
    if (layer + option.span > chain.size())
      continue;
    bool fits = true;
    for (int i = 0; i < option.span; ++i) {
      const ChainLayer &each = chain[layer + i];
      fits &= static_cast<int64_t>(saved + option.forwardPeak) + each.forwardRest <= limit;
      fits &= static_cast<int64_t>(saved + option.backwardPeak) + each.backwardRest <= limit;
    }
    if (!fits)
      continue;
    std::optional<double> rest = cheapestByTryingAll(chain, limit, layer + option.span, saved + option.saved);
    if (rest && (!best || option.seconds + *rest < *best))
      best = option.seconds + *rest;
  }
  return best;
}

std::vector<ChainLayer> randomChain(std::mt19937 &random) {
  std::vector<ChainLayer> chain(5);
  for (ChainLayer &layer : chain) {
    for (int i = 0; i < 4; ++i) {
      uint64_t saved = random() % 50;
      layer.options.push_back(
          {saved, saved + random() % 20, 40 + random() % 40, static_cast<double>(random() % 30)});
    }
    layer.options.push_back({random() % 10, 20, 90, 12, 2});
    layer.forwardRest = random() % 30;
    layer.backwardRest = random() % 30;
  }
  return chain;
}

TEST(ChoiceLadderTest, FindsTheCheapest) {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    std::vector<ChainLayer> chain = randomChain(random);
    for (int64_t limit = 50; limit < 400; limit += 25) {
      std::optional<Assignment> found = cheapestBelow(chain, limit);
      std::optional<double> best = cheapestByTryingAll(chain, limit);
      ASSERT_EQ(found.has_value(), best.has_value()) << "round " << round << ", limit " << limit;
      if (found) {
        EXPECT_DOUBLE_EQ(found->seconds, *best) << "round " << round << ", limit " << limit;
      }
    }
  }
}

TEST(ChoiceLadderTest, LimitsAreTight) {
  std::mt19937 random(2);
  std::vector<ChainLayer> chain = randomChain(random);
  auto [lowest, highest] = limitsOf(chain, 1);
  EXPECT_TRUE(cheapestBelow(chain, lowest));
  EXPECT_FALSE(cheapestBelow(chain, lowest - 1));
  EXPECT_EQ(cheapestBelow(chain, highest)->seconds, cheapestBelow(chain, 1 << 20)->seconds);
  EXPECT_GT(cheapestBelow(chain, highest - 1)->seconds, cheapestBelow(chain, highest)->seconds);
}

TEST(ChoiceLadderTest, RungsCostMoreAndMoreAndEndAtTheSmallest) {
  std::mt19937 random(3);
  std::vector<ChainLayer> chain = randomChain(random);
  auto [lowest, highest] = limitsOf(chain, 1);
  auto rungs = climb(chain, lowest, highest, 40);
  ASSERT_GT(rungs.size(), 3u);
  for (size_t i = 1; i < rungs.size(); ++i) {
    EXPECT_GT(rungs[i].second.seconds, rungs[i - 1].second.seconds);
    EXPECT_LT(rungs[i].first, rungs[i - 1].first);
  }
  EXPECT_DOUBLE_EQ(rungs.back().second.seconds, cheapestBelow(chain, lowest)->seconds);
}

// Eighty equal layers whose options lie on a line: as many as needed take each.
TEST(ChoiceLadderTest, ManyEqualLayersShareTheBytes) {
  std::vector<ChainLayer> chain(80);
  for (ChainLayer &layer : chain)
    layer.options = {{100, 120, 120, 0}, {40, 100, 130, 1}, {10, 100, 140, 3}};
  for (int64_t limit : {8000, 6000, 4000, 2000, 1000}) {
    std::optional<Assignment> found = cheapestBelow(chain, limit);
    ASSERT_TRUE(found) << limit;
    uint64_t saved = 0;
    for (size_t i = 0; i < chain.size(); ++i) {
      const ChainOption &option = chain[i].options[found->options[i]];
      EXPECT_LE(saved + option.backwardPeak, static_cast<uint64_t>(limit));
      saved += option.saved;
    }
  }
  EXPECT_FALSE(cheapestBelow(chain, 900));
}

} // namespace
} // namespace ft::compiler
