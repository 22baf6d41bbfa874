#include "runtime/data/evaluation_batches.h"

#include <algorithm>

#include "runtime/data/batch_rows.h"

namespace ft {

EvaluationBatches::EvaluationBatches(const Dataset& dataset, int64_t batch, int rank, int world,
                                     int64_t max_batches, bool fills_up)
    : dataset_(dataset), batch_(batch), rank_(rank), world_(world) {
  const int64_t per_batch = batch * world;
  num_batches_ = (dataset.num_sequences() + (fills_up ? per_batch - 1 : 0)) / per_batch;
  if (max_batches > 0) num_batches_ = std::min(num_batches_, max_batches);
}

void EvaluationBatches::Fill(int64_t index, absl::Span<void* const> inputs) const {
  const int64_t first = (index * world_ + rank_) * batch_;
  BatchRows rows(dataset_, inputs);
  for (int64_t row = 0; row < batch_; ++row) {
    if (first + row < dataset_.num_sequences()) {
      dataset_.Read(first + row, rows.here());
    } else {
      rows.FillUp();
    }
    rows.Next();
  }
  dataset_.ReadConstants(inputs);
}

}  // namespace ft
