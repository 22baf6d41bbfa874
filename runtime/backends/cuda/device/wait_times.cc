#include "runtime/backends/cuda/device/wait_times.h"

#include <cmath>

#include "runtime/base/status_macros.h"

namespace ft::cuda {

WaitTimes::~WaitTimes() {
  for (const Pair& pair : pairs_) {
    driver_.DestroyEvent(pair.begin).IgnoreError();
    if (pair.end != nullptr) driver_.DestroyEvent(pair.end).IgnoreError();
  }
}

absl::Status WaitTimes::Begin(StreamHandle stream) {
  if (used_ == pairs_.size()) {
    FT_ASSIGN_OR_RETURN(const EventHandle begin, driver_.CreateEvent(/*timing=*/true));
    pairs_.push_back({.begin = begin});
    FT_ASSIGN_OR_RETURN(pairs_.back().end, driver_.CreateEvent(/*timing=*/true));
  }
  return driver_.Stamp(pairs_[used_++].begin, stream);
}

absl::Status WaitTimes::End(StreamHandle stream) { return driver_.Stamp(pairs_[used_ - 1].end, stream); }

absl::StatusOr<int64_t> WaitTimes::Sum() const {
  int64_t sum = 0;
  for (size_t i = 0; i < used_; ++i) {
    FT_ASSIGN_OR_RETURN(const float ms, driver_.Elapsed(pairs_[i].begin, pairs_[i].end));
    sum += std::llround(double{ms} * 1e6);
  }
  return sum;
}

}  // namespace ft::cuda
