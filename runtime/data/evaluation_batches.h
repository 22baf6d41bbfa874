// Which sequences a rank evaluates.
#pragma once

#include <cstdint>

#include "runtime/data/token_dataset.h"

namespace ft {

// Every sequence once, in the order of the data: in batch e (from 0) rank r of W takes sequences (eW + r)B
// ... (eW + r)B
// + B - 1. Where there are none left, rows are filled up with token 0 and the target -1, which no loss
// counts.
class EvaluationBatches {
 public:
  // `dataset` must outlive it. batch >= 1 sequences per rank; 0 <= rank < world; max_batches: no more than
  // these, 0 for all.
  EvaluationBatches(const TokenDataset& dataset, int64_t batch, int rank, int world, int64_t max_batches);

  // The same on every rank.
  int64_t num_batches() const { return num_batches_; }

  // Writes tokens[batch][T] and targets[batch][T], row-major. Allocates nothing.
  void Fill(int64_t index, int32_t* tokens, int32_t* targets) const;

 private:
  const TokenDataset& dataset_;
  int64_t batch_;
  int64_t rank_;
  int64_t world_;
  int64_t num_batches_;
};

}  // namespace ft
