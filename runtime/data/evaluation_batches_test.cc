#include "runtime/data/evaluation_batches.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "runtime/base/testing/temp_folder.h"

namespace ft {
namespace {

constexpr int64_t kSeqLen = 2;

class EvaluationBatchesTest : public testing::Test {
 protected:
  // n sequences; sequence k begins with token 2k.
  std::unique_ptr<Dataset> Text(int64_t n) const {
    std::string text(n * kSeqLen + 1, 0);
    std::iota(text.begin(), text.end(), 0);
    return *OpenDataset(folder_.Write("data.txt", text), 256, kSeqLen, DataFormat::kText);
  }

  // Sequences that rank `rank` sees in all batches; -1 for rows that are filled up.
  static std::vector<int64_t> Sequences(const EvaluationBatches& batches, int64_t batch) {
    std::vector<int64_t> sequences;
    std::vector<int32_t> tokens(batch * kSeqLen), targets(batch * kSeqLen);
    for (int64_t e = 0; e < batches.num_batches(); ++e) {
      batches.Fill(e, {tokens.data(), targets.data()});
      for (int64_t at = 0; at < batch * kSeqLen; at += kSeqLen) {
        sequences.push_back(targets[at] == -1 ? -1 : tokens[at] / kSeqLen);
        for (int64_t i = at; i < at + kSeqLen; ++i)
          EXPECT_EQ(targets[i], targets[at] == -1 ? -1 : tokens[i] + 1);
      }
    }
    return sequences;
  }

  TempFolder folder_;
};

TEST_F(EvaluationBatchesTest, EverySequenceOnceOverAllRanks) {
  const auto data = Text(7);
  EXPECT_EQ(Sequences({*data, 2, 0, 2, 0}, 2), (std::vector<int64_t>{0, 1, 4, 5}));
  EXPECT_EQ(Sequences({*data, 2, 1, 2, 0}, 2), (std::vector<int64_t>{2, 3, 6, -1}));
}

TEST_F(EvaluationBatchesTest, ARankMayHaveNothingLeft) {
  const auto data = Text(2);
  EXPECT_EQ(Sequences({*data, 2, 1, 2, 0}, 2), (std::vector<int64_t>{-1, -1}));
}

TEST_F(EvaluationBatchesTest, NoMoreBatchesThanAskedFor) {
  const auto data = Text(7);
  EXPECT_EQ(Sequences({*data, 2, 0, 1, 2}, 2), (std::vector<int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(Sequences({*data, 2, 0, 1, 100}, 2), (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, -1}));
}

}  // namespace
}  // namespace ft
