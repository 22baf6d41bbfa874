// Which sequences a rank sees at a step.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/data/dataset.h"
#include "runtime/data/epoch_permutation.h"
#include "runtime/data/source_mix.h"

namespace ft {

// A run goes along an endless row of sequences. At micro-step j (from 0, counted from where the run began or
// was resumed) rank r of W takes positions consumed + (jW + r)B ... + B - 1 of it, so the shares of the ranks
// are disjoint, and whatever W and B are after resuming, the row goes on where it was left.
//
// SourceMix says of which source position p is, and at which position of that source's own row; with one
// source that is p. Position q of a source of n sequences lies in its epoch q / n. Without shuffling it is
// the source's sequence q % n; with it, the one that a permutation drawn from (seed, source, epoch) puts at q
// % n. Either way every epoch of every source has each of its sequences once. Stateless: any micro-step can
// be asked for in any order.
class BatchSampler {
 public:
  // `dataset` must outlive the sampler. batch >= 1 sequences per rank; 0 <= rank < world; `consumed` >= 0
  // sequences, over all ranks, before micro-step 0.
  BatchSampler(const Dataset& dataset, int64_t batch, int rank, int world, uint64_t seed, bool shuffle,
               int64_t consumed = 0);

  // Writes the inputs of the model, each `batch` examples row after row, and constants. Allocates nothing;
  // const and thread-safe.
  void Fill(int64_t micro_step, absl::Span<void* const> inputs) const;

  // The sequence of the data set at row `row` of `micro_step` on this rank: what Fill() copies.
  int64_t SequenceIndex(int64_t micro_step, int64_t row) const;

  // How many sequences of each source there are in the first `positions` of the row: how far a run has come
  // in each of them that has consumed so many. Allocates.
  std::vector<int64_t> OfSources(int64_t positions) const { return mix_.Dealt(positions); }

 private:
  int64_t Position(int64_t micro_step, int64_t row) const;
  // The sequence at a position of the row; `block` is kept from one call to the next.
  int64_t At(int64_t position, SourceMix::Block& block) const;
  int64_t OfSource(size_t source, int64_t position) const;

  const Dataset& dataset_;
  int64_t batch_;
  int rank_;
  int world_;
  int64_t consumed_;
  bool shuffle_;
  SourceMix mix_;
  std::vector<EpochPermutation> permutations_;  // of each source
};

}  // namespace ft
