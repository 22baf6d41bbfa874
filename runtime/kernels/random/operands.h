// The operands of init_normal and init_constant: read and checked once, for all devices.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "runtime/device/kernel.h"

namespace ft {

// A parameter's part of what this rank holds of its unit: elements [begin, end) of the slice, none when they
// are equal, where the parameter's element `first` is the one at `begin`.
struct InitialValues {
  const int64_t* rng = nullptr;
  Tensor slice;  // f32, bf16 or f16
  int64_t begin = 0, end = 0, first = 0;
  float value = 0.0f;
};

// In rng, out slice; attributes begin, end (in elements of the unit) and value.
absl::StatusOr<InitialValues> ReadInitialValues(const KernelOperands& operands,
                                                const KernelAttributes& attributes);
// Of init_normal: numbers are drawn four at a time.
absl::StatusOr<uint32_t> ReadNormalStream(const InitialValues& values, const KernelAttributes& attributes);

}  // namespace ft
