// The operands of rotary_table: checked once, for all devices.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/device/kernel.h"

namespace ft {

struct RotaryTableOperands {
  Tensor cosine, sine;              // [positions, half], f32
  std::vector<double> frequencies;  // half; radians a position
  double scale = 1;                 // of cosine and sine

  int64_t positions() const { return cosine.dims[0]; }
  int64_t half() const { return cosine.dims[1]; }
};

// Out cosine and sine; attribute base or frequencies, and scale, which may be absent.
absl::StatusOr<RotaryTableOperands> ReadRotaryTable(const KernelOperands& operands,
                                                    const KernelAttributes& attributes);

}  // namespace ft
