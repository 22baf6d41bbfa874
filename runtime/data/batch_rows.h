// Where the rows of a batch lie, one after the other.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>

#include "absl/types/span.h"
#include "runtime/data/dataset.h"
#include "runtime/plan/inputs.h"

namespace ft {

// Goes along the rows of all inputs at once. Allocates nothing.
class BatchRows {
 public:
  // inputs[i] is where the first row of input i goes.
  BatchRows(const Dataset& dataset, absl::Span<void* const> inputs)
      : dataset_(dataset), count_(inputs.size()) {
    for (size_t i = 0; i < count_; ++i) {
      rows_[i] = inputs[i];
      bytes_[i] = IsConstant(dataset.inputs()[i]) ? 0 : ExampleBytes(dataset.inputs()[i]);
    }
  }

  absl::Span<void* const> here() const { return absl::MakeConstSpan(rows_).first(count_); }

  void Next() {
    for (size_t i = 0; i < count_; ++i) rows_[i] = static_cast<char*>(rows_[i]) + bytes_[i];
  }

  // An example that no mean over targets counts: -1 for ids that are left out, 0 for all else.
  void FillUp() {
    for (size_t i = 0; i < count_; ++i)
      std::memset(rows_[i], dataset_.inputs()[i].may_be_left_out() ? 0xff : 0, bytes_[i]);
  }

 private:
  const Dataset& dataset_;
  size_t count_;
  std::array<void*, kMaxInputs> rows_ = {};
  std::array<size_t, kMaxInputs> bytes_ = {};  // of a row; 0: a constant
};

}  // namespace ft
