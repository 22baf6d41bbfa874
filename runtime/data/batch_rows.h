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

  // An example that no mean over targets counts: -1 for ids that are left out, 0 for all else, but no token
  // is masked: attention to none at all may be no number.
  void FillUp() {
    for (size_t i = 0; i < count_; ++i) {
      const proto::Input& input = dataset_.inputs()[i];
      std::memset(rows_[i], input.may_be_left_out() ? 0xff : 0, bytes_[i]);
      if (input.filling() == proto::Input::ATTENTION_MASK) FillOnes(input, i);
    }
  }

 private:
  // Little-endian: the first byte of each element is what it has.
  void FillOnes(const proto::Input& input, size_t i) {
    const size_t size = SizeOf(static_cast<DType>(input.dtype()));
    for (size_t at = 0; at < bytes_[i]; at += size) static_cast<char*>(rows_[i])[at] = 1;
  }

  const Dataset& dataset_;
  size_t count_;
  std::array<void*, kMaxInputs> rows_ = {};
  std::array<size_t, kMaxInputs> bytes_ = {};  // of a row; 0: a constant
};

}  // namespace ft
