// Which numbers of a tensor are not finite.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/dtype.h"
#include "runtime/device/device.h"
#include "runtime/device/kernel.h"

namespace ft {

struct NotFinite {
  int64_t nan = 0, positive = 0, negative = 0;  // NaN, +infinity, -infinity
  int64_t first = -1;                           // the first element that is one of them; -1: there is none
  bool any() const { return first >= 0; }
};

// Whether a type has such numbers.
constexpr bool HasFloats(DType dtype) { return IsFloat(dtype) || dtype == DType::kF64; }

// Adds elements begin ... begin + n - 1 of a tensor, which lie at `data`. `dtype` has floats.
void CountNotFinite(const void* data, DType dtype, int64_t begin, int64_t n, NotFinite& numbers);

// Looks at tensors where the device has them: in place where the host can, else in pieces that are copied.
class NotFiniteScan {
 public:
  explicit NotFiniteScan(Device& device) : device_(device) {}

  // Only while nothing runs. `on_host`: it lies in host memory. Nothing of a type that has no floats. Errors:
  // those of the device.
  absl::StatusOr<NotFinite> Look(const Tensor& tensor, bool on_host);

 private:
  Device& device_;
  std::vector<char> piece_;  // empty until it is needed
};

}  // namespace ft
