#include "runtime/data/batch_sampler.h"

namespace ft {

BatchSampler::BatchSampler(const TokenDataset& dataset, int64_t batch, int rank, int world, uint64_t seed,
                           bool shuffle, int64_t consumed)
    : dataset_(dataset),
      batch_(batch),
      rank_(rank),
      world_(world),
      shuffle_(shuffle),
      consumed_(consumed),
      permutation_(dataset.num_sequences(), seed) {}

int64_t BatchSampler::SequenceIndex(int64_t step, int64_t row) const {
  const int64_t position = consumed_ + (step * world_ + rank_) * batch_ + row;
  const int64_t epoch = position / dataset_.num_sequences();
  const int64_t in_epoch = position % dataset_.num_sequences();
  return shuffle_ ? permutation_.At(epoch, in_epoch) : in_epoch;
}

void BatchSampler::Fill(int64_t step, int32_t* tokens, int32_t* targets) const {
  const int64_t seq_len = dataset_.seq_len();
  for (int64_t row = 0; row < batch_; ++row) {
    dataset_.ReadSequence(SequenceIndex(step, row), tokens + row * seq_len, targets + row * seq_len);
  }
}

}  // namespace ft
