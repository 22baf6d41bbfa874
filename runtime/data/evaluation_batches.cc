#include "runtime/data/evaluation_batches.h"

#include <algorithm>

namespace ft {

EvaluationBatches::EvaluationBatches(const TokenDataset& dataset, int64_t batch, int rank, int world,
                                     int64_t max_batches)
    : dataset_(dataset), batch_(batch), rank_(rank), world_(world) {
  const int64_t per_batch = batch * world;
  num_batches_ = (dataset.num_sequences() + per_batch - 1) / per_batch;
  if (max_batches > 0) num_batches_ = std::min(num_batches_, max_batches);
}

void EvaluationBatches::Fill(int64_t index, int32_t* tokens, int32_t* targets) const {
  const int64_t seq_len = dataset_.seq_len(), first = (index * world_ + rank_) * batch_;
  for (int64_t row = 0; row < batch_; ++row, tokens += seq_len, targets += seq_len) {
    if (first + row < dataset_.num_sequences()) {
      dataset_.ReadSequence(first + row, tokens, targets);
    } else {
      std::fill_n(tokens, seq_len, 0);
      std::fill_n(targets, seq_len, -1);
    }
  }
}

}  // namespace ft
