#include "runtime/data/source_mix.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

namespace ft {
namespace {

std::vector<int64_t> Shares(const std::vector<double>& weights) {
  const auto shares = SharesOf(weights);
  EXPECT_TRUE(shares.ok()) << shares.status();
  return *shares;
}

const std::vector<std::vector<double>> kMixes = {{1, 1},
                                                 {0.7, 0.3},
                                                 {0.3, 0.7},
                                                 {0.999, 0.001},
                                                 {1e-6, 1},
                                                 {0.5, 0.25, 0.125, 0.125},
                                                 {1, 2, 3, 4, 5, 6, 7},
                                                 {1.0 / 3, 1.0 / 3, 1.0 / 3},
                                                 {1e300, 3e299, 1e298},
                                                 {5e-324, 5e-324},
                                                 std::vector<double>(1000, 0.001),
                                                 {1e-3, 1e-3, 1e-3, 1e-3, 1e-3, 1e-3, 1}};

double Bound(size_t sources) { return std::ceil(std::log2(sources)) / 2 + 1e-6; }

long double PartOf(const std::vector<double>& weights, size_t source) {
  long double sum = 0;
  for (const double weight : weights) sum += weight;
  return weights[source] / sum;
}

// Every source's positions come in order, none left out or twice; its number stays at its part.
TEST(SourceMix, DealsOutEveryPositionOfEverySourceInOrder) {
  for (const std::vector<double>& weights : kMixes) {
    const SourceMix mix(Shares(weights), 42);
    std::vector<int64_t> seen(weights.size(), 0);
    for (int64_t index = 0; index < 200; ++index) {
      SourceMix::Block block;
      mix.Fill(index, block);
      ASSERT_EQ(block.index, index);
      for (int64_t i = 0; i < SourceMix::kBlock; ++i) {
        ASSERT_LT(block.source[i], weights.size());
        ASSERT_EQ(block.position[i], seen[block.source[i]]++);
      }
      ASSERT_EQ(seen, mix.Dealt((index + 1) * SourceMix::kBlock));
      for (size_t source = 0; source < weights.size(); ++source) {
        const auto exact = static_cast<double>((index + 1) * SourceMix::kBlock * PartOf(weights, source));
        ASSERT_LE(std::abs(static_cast<double>(seen[source]) - exact), Bound(weights.size()))
            << "source " << source << " of " << weights.size() << " at block " << index;
      }
    }
  }
}

// Far out, too: no error adds up, and no product overflows.
TEST(SourceMix, ProportionsStayExact) {
  std::mt19937_64 random(3);
  for (const std::vector<double>& weights : kMixes) {
    const SourceMix mix(Shares(weights), 1);
    for (const int64_t index : {int64_t{1} << 20, int64_t{1} << 31, (int64_t{1} << 54) - 2}) {
      const auto blocks = static_cast<int64_t>(random() % static_cast<uint64_t>(index / 2)) + index / 2;
      const auto length = static_cast<long double>(blocks) * SourceMix::kBlock;
      const std::vector<int64_t> before = mix.Dealt(blocks * SourceMix::kBlock);
      const std::vector<int64_t> after = mix.Dealt((blocks + 1) * SourceMix::kBlock);
      int64_t all = 0;
      for (size_t source = 0; source < weights.size(); ++source) {
        const int64_t had = before[source];
        ASSERT_GE(had, 0);
        ASSERT_GE(after[source], had);
        all += had;
        // Shares are rounded to 2^-40 of all.
        EXPECT_NEAR(static_cast<double>(had / length), static_cast<double>(PartOf(weights, source)),
                    1e-12 * static_cast<double>(weights.size()) +
                        Bound(weights.size()) / static_cast<double>(length));
      }
      EXPECT_EQ(all, blocks * SourceMix::kBlock);
      SourceMix::Block block;
      mix.Fill(blocks, block);
      for (int64_t i = 0; i < SourceMix::kBlock; ++i) {
        EXPECT_GE(block.position[i], before[block.source[i]]);
        EXPECT_LT(block.position[i], after[block.source[i]]);
      }
    }
  }
}

TEST(SourceMix, DealtCountsWithinBlocks) {
  const SourceMix mix(Shares({0.5, 0.3, 0.2}), 9);
  std::vector<int64_t> seen(3, 0);
  for (int64_t position = 0; position < 3 * SourceMix::kBlock; ++position) {
    EXPECT_EQ(mix.Dealt(position), seen);
    SourceMix::Block block;
    mix.Fill(position / SourceMix::kBlock, block);
    ++seen[block.source[position % SourceMix::kBlock]];
  }
}

TEST(SourceMix, OrderComesFromTheSeedAndTheBlock) {
  const std::vector<int64_t> shares = Shares({0.5, 0.3, 0.2});
  const auto order = [&](uint64_t seed, int64_t index) {
    SourceMix::Block block;
    SourceMix(shares, seed).Fill(index, block);
    return std::vector<uint32_t>(block.source, block.source + SourceMix::kBlock);
  };
  EXPECT_EQ(order(5, 3), order(5, 3));
  EXPECT_NE(order(5, 3), order(6, 3));
  EXPECT_NE(order(5, 3), order(5, 4));
  // Mixed, not one source after the other: of 256 places of which half are source 0, some 128 differ from the
  // next.
  const std::vector<uint32_t> sources = order(5, 3);
  int changes = 0;
  for (size_t i = 1; i < sources.size(); ++i) changes += sources[i] != sources[i - 1];
  EXPECT_GT(changes, 100);
}

// Written down once, so that a change of the mix, which would break resuming, is noticed.
TEST(SourceMix, KnownMix) {
  SourceMix::Block block;
  SourceMix(Shares({0.7, 0.3}), 42).Fill(3, block);
  EXPECT_EQ(std::vector<uint32_t>(block.source, block.source + 24),
            (std::vector<uint32_t>{0, 1, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 1}));
  EXPECT_EQ(block.position[0], 538);  // 0.7 * 3 * 256 = 537.6
}

TEST(SourceMix, SharesAreThePartsOfWeights) {
  EXPECT_EQ(Shares({1}), (std::vector<int64_t>{kShareUnit}));
  EXPECT_EQ(Shares({1, 3}), (std::vector<int64_t>{kShareUnit / 4, kShareUnit / 4 * 3}));
  EXPECT_EQ(Shares({0.7, 0.3}), Shares({7, 3}));
  EXPECT_EQ(Shares({1e308, 1e308}), Shares({1, 1}));
  EXPECT_FALSE(SharesOf(std::vector<double>{1, 1e-9}).ok());
  EXPECT_TRUE(SharesOf(std::vector<double>{1, 1.1e-9}).ok());
}

}  // namespace
}  // namespace ft
