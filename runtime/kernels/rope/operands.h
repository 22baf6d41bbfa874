// The operands of rope: checked once, for all devices.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "runtime/device/kernel.h"

namespace ft {

struct RopeOperands {
  Tensor x, result;  // [batch, positions, heads * 2 * half], of one type
  int64_t heads = 0, half = 0;
  double base = 0;
  bool inverse = false;

  int64_t positions() const { return x.dims[1]; }
};

// In x, out the result; attributes heads, base and inverse.
absl::StatusOr<RopeOperands> ReadRope(const KernelOperands& operands, const KernelAttributes& attributes);

}  // namespace ft
