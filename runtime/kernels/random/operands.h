// The operands of init_normal, init_uniform and init_constant: read and checked once, for all devices.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "runtime/device/kernel.h"

namespace ft {

// A parameter's part of what this rank holds of its unit: elements [begin, end) of the slice, none when they
// are equal, where the parameter's element `first` is the one at `begin`, and what it draws from.
struct InitialValues {
  const int64_t* rng = nullptr;
  Tensor slice;  // f32, bf16 or f16
  int64_t begin = 0, end = 0, first = 0;
  float value = 0.0f;
  uint32_t stream = 0;
};

// In rng, out slice; attributes `parameter`, its number (ParameterRange), and `value`.
absl::StatusOr<InitialValues> ReadInitialValues(const KernelOperands& operands,
                                                const KernelAttributes& attributes);
// The same where numbers are drawn, four at a time.
absl::StatusOr<InitialValues> ReadDrawnValues(const KernelOperands& operands,
                                              const KernelAttributes& attributes);

}  // namespace ft
