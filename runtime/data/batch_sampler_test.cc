#include "runtime/data/batch_sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "runtime/base/testing/temp_folder.h"

namespace ft {
namespace {

// Text of n sequences of length T; token i is i % 251.
std::unique_ptr<Dataset> Text(const TempFolder& folder, int64_t n, int64_t seq_len) {
  std::string text;
  for (int64_t i = 0; i < n * seq_len + 1; ++i) text.push_back(static_cast<char>(i % 251));
  auto dataset = OpenDataset(folder.Write("data.txt", text), 256, seq_len, DataFormat::kText);
  EXPECT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->num_sequences(), n);
  return *std::move(dataset);
}

// The sequences of all ranks, step by step, rank after rank.
std::vector<int64_t> Sequences(const Dataset& dataset, int64_t batch, int world, uint64_t seed, bool shuffle,
                               int64_t steps) {
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
  // Sources of so many sequences of one token, with these weights.
  std::unique_ptr<Dataset> Sources(const std::vector<int64_t>& sizes,
                                   const std::vector<double>& weights) const {
    std::vector<DataEntry> entries;
    for (size_t i = 0; i < sizes.size(); ++i) {
      const std::string text(static_cast<size_t>(sizes[i]) + 1, 'x');
      entries.push_back({.path = folder_.Write("source" + std::to_string(i), text), .weight = weights[i]});
    }
    return *OpenDataset(entries, 256, 1, DataFormat::kText);
  }

  TempFolder folder_;
};

// A run that is stopped and goes on with other ranks and batches, several times: the positions that it takes.
struct Leg {
  int world;
  int64_t batch, steps;
};
constexpr Leg kLegs[] = {{8, 3, 5}, {4, 5, 7}, {6, 1, 11}, {1, 16, 6}, {8, 2, 9}, {3, 7, 40}};

std::vector<int64_t> ResumedSequences(const Dataset& dataset, uint64_t seed, bool shuffle) {
  std::vector<int64_t> sequences;
  for (const Leg& leg : kLegs) {
    const auto consumed = static_cast<int64_t>(sequences.size());
    for (int64_t step = 0; step < leg.steps; ++step) {
      for (int rank = 0; rank < leg.world; ++rank) {
        const BatchSampler sampler(dataset, leg.batch, rank, leg.world, seed, shuffle, consumed);
        for (int64_t row = 0; row < leg.batch; ++row) sequences.push_back(sampler.SequenceIndex(step, row));
      }
    }
  }
  return sequences;
}

// That the sequences of each source come in epochs, each of which has each of them once. At least `epochs`
// whole ones of the first source.
void ExpectEpochs(const Dataset& dataset, const std::vector<int64_t>& sequences, bool shuffle,
                  int64_t epochs) {
  for (const DataSource& source : dataset.sources()) {
    std::vector<int64_t> own;
    for (const int64_t sequence : sequences) {
      if (sequence >= source.first_sequence && sequence < source.first_sequence + source.num_sequences)
        own.push_back(sequence - source.first_sequence);
    }
    const int64_t whole = static_cast<int64_t>(own.size()) / source.num_sequences;
    if (source.first_sequence == 0) {
      EXPECT_GE(whole, epochs);
    }
    for (int64_t epoch = 0; epoch <= whole; ++epoch) {
      const auto begin = own.begin() + epoch * source.num_sequences;
      std::vector<int64_t> seen(begin, epoch == whole ? own.end() : begin + source.num_sequences);
      const bool in_order = std::is_sorted(seen.begin(), seen.end());
      EXPECT_TRUE(shuffle || in_order);
      std::sort(seen.begin(), seen.end());
      EXPECT_EQ(std::adjacent_find(seen.begin(), seen.end()), seen.end()) << "twice in epoch " << epoch;
    }
  }
}

TEST_F(BatchSamplerTest, WithoutShufflingItIsTheFormula) {
  const auto dataset = Text(folder_, 10, 3);
  const BatchSampler sampler(*dataset, 2, 1, 2, 99, false);
  int32_t tokens[6], targets[6];
  sampler.Fill(1, {tokens, targets});  // sequences (1 * 2 + 1) * 2 = 6 and 7
  EXPECT_EQ(std::vector<int32_t>(tokens, tokens + 6), (std::vector<int32_t>{18, 19, 20, 21, 22, 23}));
  EXPECT_EQ(std::vector<int32_t>(targets, targets + 6), (std::vector<int32_t>{19, 20, 21, 22, 23, 24}));
  sampler.Fill(2, {tokens, targets});  // 10 and 11 wrap to 0 and 1
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

TEST_F(BatchSamplerTest, GoesOnWhereItWasLeft) {
  for (const bool shuffle : {true, false}) {
    const auto dataset = Text(folder_, 97, 1);
    const std::vector<int64_t> sequences = ResumedSequences(*dataset, 11, shuffle);
    // As one run of one rank would have taken them.
    EXPECT_EQ(sequences, Sequences(*dataset, 1, 1, 11, shuffle, static_cast<int64_t>(sequences.size())));
    ExpectEpochs(*dataset, sequences, shuffle, 12);
  }
}

TEST_F(BatchSamplerTest, FillBeginsAtTheSequencesConsumed) {
  const auto dataset = Text(folder_, 10, 3);
  int32_t tokens[6], targets[6];
  BatchSampler(*dataset, 2, 1, 2, 99, false, 5)
      .Fill(1, {tokens, targets});  // 5 + (1 * 2 + 1) * 2 = 11 and 12: 1, 2
  EXPECT_EQ(std::vector<int32_t>(tokens, tokens + 6), (std::vector<int32_t>{3, 4, 5, 6, 7, 8}));
}

TEST_F(BatchSamplerTest, EverySourceHasEpochsOfItsOwn) {
  for (const bool shuffle : {true, false}) {
    const auto dataset = Sources({37, 300, 5}, {0.5, 0.3, 0.2});
    const std::vector<int64_t> sequences = ResumedSequences(*dataset, 7, shuffle);
    EXPECT_EQ(sequences, Sequences(*dataset, 1, 1, 7, shuffle, static_cast<int64_t>(sequences.size())));
    EXPECT_EQ(sequences, ResumedSequences(*dataset, 7, shuffle));
    EXPECT_NE(sequences, ResumedSequences(*dataset, 8, shuffle));
    ExpectEpochs(*dataset, sequences, shuffle, 10);
    for (const size_t position : {size_t{0}, size_t{1}, size_t{300}, sequences.size()}) {
      std::vector<int64_t> counted(3, 0);
      for (size_t i = 0; i < position; ++i) ++counted[sequences[i] < 37 ? 0 : sequences[i] < 337 ? 1 : 2];
      EXPECT_EQ(BatchSampler(*dataset, 1, 0, 1, 7, shuffle).OfSources(static_cast<int64_t>(position)),
                counted);
    }
    const auto of_first = std::count_if(sequences.begin(), sequences.end(), [](int64_t k) { return k < 37; });
    // Half of all, but for a source's place in the last block, which is drawn.
    EXPECT_NEAR(static_cast<double>(of_first), 0.5 * static_cast<double>(sequences.size()), 30);
  }
}

TEST_F(BatchSamplerTest, FillCopiesWhatTheIndexSays) {
  std::vector<DataEntry> entries;
  for (const char letter : {'a', 'b', 'c'}) {
    std::string text;
    for (int i = 0; i < 100; ++i) text += std::string(1, letter) + static_cast<char>(i);
    entries.push_back({.path = folder_.Write(std::string(1, letter), text), .weight = letter - 'a' + 1});
  }
  const auto dataset = *OpenDataset(entries, 256, 2, DataFormat::kText);
  const BatchSampler sampler(*dataset, 300, 1, 2, 3, true, 1000);  // a batch of more than a block of the mix
  std::vector<int32_t> tokens(600), targets(600);
  sampler.Fill(4, {tokens.data(), targets.data()});
  for (int64_t row = 0; row < 300; ++row) {
    const int64_t index = sampler.SequenceIndex(4, row);  // 99 of each source
    EXPECT_EQ(tokens[2 * row], 'a' + index / 99);
    EXPECT_EQ(tokens[2 * row + 1], index % 99);
    EXPECT_EQ(targets[2 * row], index % 99);
  }
}

// One source is what all files without weights are, or one with a weight.
TEST_F(BatchSamplerTest, AWeightOfASingleSourceChangesNothing) {
  const auto with = Sources({60}, {0.25}), without = Text(folder_, 60, 1);
  EXPECT_EQ(Sequences(*with, 3, 2, 5, true, 40), Sequences(*without, 3, 2, 5, true, 40));
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
