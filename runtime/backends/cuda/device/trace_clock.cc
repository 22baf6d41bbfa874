#include "runtime/backends/cuda/device/trace_clock.h"

#include <chrono>
#include <cmath>

#include "runtime/base/status_macros.h"

namespace ft::cuda {

TraceClock::~TraceClock() {
  if (base_ != nullptr) driver_.DestroyEvent(base_).IgnoreError();
}

absl::Status TraceClock::Set(StreamHandle stream) {
  if (base_ == nullptr) {
    FT_ASSIGN_OR_RETURN(base_, driver_.CreateEvent(/*timing=*/true));
  }
  FT_RETURN_IF_ERROR(driver_.Record(base_, stream));
  FT_RETURN_IF_ERROR(driver_.Synchronize(stream));
  base_ns_ = std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
  return absl::OkStatus();
}

absl::StatusOr<int64_t> TraceClock::At(EventHandle event) const {
  FT_ASSIGN_OR_RETURN(const float ms, driver_.Elapsed(base_, event));
  return base_ns_ + std::llround(static_cast<double>(ms) * 1e6);
}

}  // namespace ft::cuda
