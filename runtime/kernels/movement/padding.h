// The operand of zero_padding: checked once, for all devices.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "runtime/device/kernel.h"
#include "runtime/kernels/movement/byte_range.h"

namespace ft {

// What of a unit's flat buffer, or of a slice of it, lies in no parameter: in bytes from its begin,
// ascending.
absl::StatusOr<std::vector<ByteRange>> ReadPadding(const KernelOperands& operands);

}  // namespace ft
