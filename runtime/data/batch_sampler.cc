#include "runtime/data/batch_sampler.h"

#include "runtime/data/batch_rows.h"

namespace ft {
namespace {

std::vector<int64_t> SourceShares(const Dataset& dataset) {
  std::vector<int64_t> shares;
  for (const DataSource& source : dataset.sources()) shares.push_back(source.share);
  return shares;
}

}  // namespace

BatchSampler::BatchSampler(const Dataset& dataset, int64_t batch, int rank, int world, uint64_t seed,
                           bool shuffle, int64_t consumed)
    : dataset_(dataset),
      batch_(batch),
      rank_(rank),
      world_(world),
      consumed_(consumed),
      shuffle_(shuffle),
      mix_(SourceShares(dataset), seed) {
  for (const DataSource& source : dataset.sources())
    permutations_.emplace_back(source.num_sequences, seed, static_cast<uint32_t>(permutations_.size()));
}

int64_t BatchSampler::Position(int64_t micro_step, int64_t row) const {
  return consumed_ + (micro_step * world_ + rank_) * batch_ + row;
}

int64_t BatchSampler::OfSource(size_t source, int64_t position) const {
  const DataSource& from = dataset_.sources()[source];
  const int64_t epoch = position / from.num_sequences, in_epoch = position % from.num_sequences;
  return from.first_sequence + (shuffle_ ? permutations_[source].At(epoch, in_epoch) : in_epoch);
}

int64_t BatchSampler::At(int64_t position, SourceMix::Block& block) const {
  if (mix_.num_sources() == 1) return OfSource(0, position);
  if (const int64_t index = position / SourceMix::kBlock; block.index != index) mix_.Fill(index, block);
  const int64_t place = position % SourceMix::kBlock;
  return OfSource(block.source[place], block.position[place]);
}

int64_t BatchSampler::SequenceIndex(int64_t micro_step, int64_t row) const {
  SourceMix::Block block;
  return At(Position(micro_step, row), block);
}

void BatchSampler::Fill(int64_t micro_step, absl::Span<void* const> inputs) const {
  BatchRows rows(dataset_, inputs);
  SourceMix::Block block;
  for (int64_t row = 0; row < batch_; ++row) {
    dataset_.Read(At(Position(micro_step, row), block), rows.here());
    rows.Next();
  }
  dataset_.ReadConstants(inputs);
}

}  // namespace ft
