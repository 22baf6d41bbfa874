#include "runtime/data/batch_sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "runtime/base/temp_folder.h"

namespace ft {
namespace {

// Text of n sequences of length T; token i is i % 251.
std::unique_ptr<TokenDataset> Text(const TempFolder& folder, int64_t n, int64_t seq_len) {
  std::string text;
  for (int64_t i = 0; i < n * seq_len + 1; ++i) text.push_back(static_cast<char>(i % 251));
  auto dataset = OpenDataset(folder.Write("data.txt", text), 256, seq_len, DataFormat::kText);
  EXPECT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->num_sequences(), n);
  return *std::move(dataset);
}

// The sequences of all ranks, step by step, rank after rank.
std::vector<int64_t> Sequences(const TokenDataset& dataset, int64_t batch, int world, uint64_t seed,
                               bool shuffle, int64_t steps) {
  std::vector<int64_t> sequences;
  for (int64_t step = 0; step < steps; ++step) {
    for (int rank = 0; rank < world; ++rank) {
      const BatchSampler sampler(dataset, batch, rank, world, seed, shuffle);
      for (int64_t row = 0; row < batch; ++row) sequences.push_back(sampler.SequenceIndex(step, row));
    }
  }
  return sequences;
}

class BatchSamplerTest : public testing::Test {
 protected:
  TempFolder folder_;
};

TEST_F(BatchSamplerTest, WithoutShufflingItIsTheFormula) {
  const auto dataset = Text(folder_, 10, 3);
  const BatchSampler sampler(*dataset, 2, 1, 2, 99, false);
  int32_t tokens[6], targets[6];
  sampler.Fill(1, tokens, targets);  // sequences (1 * 2 + 1) * 2 = 6 and 7
  EXPECT_EQ(std::vector<int32_t>(tokens, tokens + 6), (std::vector<int32_t>{18, 19, 20, 21, 22, 23}));
  EXPECT_EQ(std::vector<int32_t>(targets, targets + 6), (std::vector<int32_t>{19, 20, 21, 22, 23, 24}));
  sampler.Fill(2, tokens, targets);  // 10 and 11 wrap to 0 and 1
  EXPECT_EQ(std::vector<int32_t>(tokens, tokens + 6), (std::vector<int32_t>{0, 1, 2, 3, 4, 5}));
}

TEST_F(BatchSamplerTest, WrapsInTheMiddleOfABatch) {
  const auto dataset = Text(folder_, 7, 3);
  EXPECT_EQ(Sequences(*dataset, 2, 2, 0, false, 3),
            (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4}));
}

TEST_F(BatchSamplerTest, EveryEpochHasEverySequenceOnce) {
  for (int64_t n : {1, 2, 3, 4, 5, 16, 17, 63, 100, 257}) {
    const auto dataset = Text(folder_, n, 1);
    // 3 ranks x 4: epochs end in the middle of steps and of batches.
    const std::vector<int64_t> sequences = Sequences(*dataset, 4, 3, 1234, true, n);
    for (int64_t epoch = 0; epoch < 12; ++epoch) {
      std::vector<int64_t> seen(sequences.begin() + epoch * n, sequences.begin() + (epoch + 1) * n);
      std::sort(seen.begin(), seen.end());
      std::vector<int64_t> all(n);
      std::iota(all.begin(), all.end(), 0);
      EXPECT_EQ(seen, all) << "n " << n << ", epoch " << epoch;
    }
  }
}

TEST_F(BatchSamplerTest, RanksAreDisjointWithinAnEpoch) {
  const auto dataset = Text(folder_, 240, 2);
  std::set<int64_t> seen;
  for (int rank = 0; rank < 4; ++rank) {
    const BatchSampler sampler(*dataset, 3, rank, 4, 7, true);
    for (int64_t step = 0; step < 20; ++step) {
      for (int64_t row = 0; row < 3; ++row) EXPECT_TRUE(seen.insert(sampler.SequenceIndex(step, row)).second);
    }
  }
  EXPECT_EQ(seen.size(), 240u);
}

TEST_F(BatchSamplerTest, ShufflingDependsOnSeedAndEpochAlone) {
  const auto dataset = Text(folder_, 60, 1);
  const std::vector<int64_t> base = Sequences(*dataset, 3, 2, 5, true, 20);
  EXPECT_EQ(Sequences(*dataset, 3, 2, 5, true, 20), base);
  EXPECT_NE(Sequences(*dataset, 3, 2, 6, true, 20), base);
  // The endless row is the same however it is cut into batches and ranks.
  EXPECT_EQ(Sequences(*dataset, 1, 6, 5, true, 20), base);
  EXPECT_EQ(Sequences(*dataset, 6, 1, 5, true, 20), base);
  const std::vector<int64_t> first(base.begin(), base.begin() + 60), second(base.begin() + 60, base.end());
  EXPECT_NE(first, second);
}

// Written down once, so that a change of the permutation, which would break resuming, is noticed.
TEST_F(BatchSamplerTest, KnownPermutation) {
  const EpochPermutation permutation(10, 42);
  std::vector<int64_t> values;
  for (int64_t i = 0; i < 10; ++i) values.push_back(permutation.At(3, i));
  EXPECT_EQ(values, (std::vector<int64_t>{3, 4, 2, 5, 0, 1, 8, 6, 9, 7}));
}

// Each element should land at each position about equally often: chi-square with 15 * 15 degrees of freedom.
TEST_F(BatchSamplerTest, PermutationsAreUniform) {
  constexpr int kN = 16, kEpochs = 4000;
  const EpochPermutation permutation(kN, 1);
  int counts[kN][kN] = {};
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    for (int i = 0; i < kN; ++i) ++counts[i][permutation.At(epoch, i)];
  }
  const double expected = double{kEpochs} / kN;
  double chi_square = 0;
  for (const auto& row : counts) {
    for (int count : row) chi_square += (count - expected) * (count - expected) / expected;
  }
  // Mean 225, standard deviation sqrt(2 * 225) = 21: four of them either way.
  EXPECT_GT(chi_square, 225 - 85);
  EXPECT_LT(chi_square, 225 + 85);
}

TEST_F(BatchSamplerTest, LargeDataAndEpochs) {
  const int64_t n = (int64_t{1} << 40) + 12345;
  const EpochPermutation permutation(n, 3);
  std::set<int64_t> seen;
  for (int64_t i = 0; i < 1000; ++i) {
    const int64_t value = permutation.At(int64_t{1} << 33, n - 1 - i);
    EXPECT_GE(value, 0);
    EXPECT_LT(value, n);
    EXPECT_TRUE(seen.insert(value).second);
  }
  EXPECT_NE(permutation.At(1, 0), permutation.At((int64_t{1} << 32) + 1, 0));
}

}  // namespace
}  // namespace ft
