// Which sequences a rank evaluates.
#pragma once

#include <cstdint>

#include "runtime/data/dataset.h"

namespace ft {

// Every example once, in the order of the data: in batch e (from 0) rank r of W takes examples (eW + r)B ...
// (eW + r)B + B - 1. Where there are none left, rows are filled up with zeros and the target -1, which no
// loss counts; where rows cannot be filled up without changing a result, what is left at the end is left out.
class EvaluationBatches {
 public:
  // `dataset` must outlive it. batch >= 1 examples per rank; 0 <= rank < world; max_batches: no more than
  // these, 0 for all; fills_up: see CanFillUpRows().
  EvaluationBatches(const Dataset& dataset, int64_t batch, int rank, int world, int64_t max_batches,
                    bool fills_up = true);

  // The same on every rank.
  int64_t num_batches() const { return num_batches_; }

  // Writes the inputs of the model, each `batch` examples row after row, and constants. Allocates nothing.
  void Fill(int64_t index, absl::Span<void* const> inputs) const;

 private:
  const Dataset& dataset_;
  int64_t batch_;
  int64_t rank_;
  int64_t world_;
  int64_t num_batches_;
};

}  // namespace ft
