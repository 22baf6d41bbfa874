// Which sequences a rank sees at a step.
#pragma once

#include <cstdint>

#include "runtime/data/epoch_permutation.h"
#include "runtime/data/token_dataset.h"

namespace ft {

// At step s (from 0) rank r of W takes positions (sW + r)B ... (sW + r)B + B - 1 of an endless row, so the
// shares of the ranks are disjoint. Position p lies in epoch p / n, n being the number of sequences. Without
// shuffling it is sequence p % n; with it, the sequence that a permutation drawn from (seed, epoch) puts at p
// % n. Either way every epoch has every sequence once. Stateless: any step can be asked for in any order,
// which is what resuming needs.
class BatchSampler {
 public:
  // `dataset` must outlive the sampler. batch >= 1 sequences per rank; 0 <= rank < world.
  BatchSampler(const TokenDataset& dataset, int64_t batch, int rank, int world, uint64_t seed, bool shuffle,
               int64_t consumed = 0);

  // Writes tokens[batch][T] and targets[batch][T], row-major. Allocates nothing; const and thread-safe.
  void Fill(int64_t step, int32_t* tokens, int32_t* targets) const;

  // The sequence at row `row` of `step` on this rank: what Fill() copies.
  int64_t SequenceIndex(int64_t step, int64_t row) const;

 private:
  const TokenDataset& dataset_;
  int64_t batch_;
  int rank_;
  int world_;
  bool shuffle_;
  int64_t consumed_;
  EpochPermutation permutation_;
};

}  // namespace ft
