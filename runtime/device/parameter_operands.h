// The operands of adamw, adam and sgd, and the parts of parameters that they update; those of init_normal and
// init_constant: read and checked once, for all devices.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/device/kernel.h"

namespace ft {

// Part of the slice [begin, end) that lies inside one parameter.
struct ParameterPart {
  int64_t begin;
  int64_t end;
  int64_t first;    // the element of the parameter at `begin`
  bool decays;      // whether weight decay applies
  uint32_t stream;  // of stochastic rounding
};

struct ParameterOperands {
  Tensor gradient;   // f32, bf16 or f16
  Tensor parameter;  // f32 or bf16
  std::array<float*, 2> states = {};
  Tensor working_copy;                 // of an f32 parameter, bf16 or f16; absent when there is none
  const float* coefficient = nullptr;  // of the gradient; NaN: the step is not applied (ft.clip_coefficient)
  const float* lr = nullptr;
  const int64_t* step = nullptr;  // steps applied so far
  const int64_t* rng = nullptr;   // null: a bf16 parameter is rounded to nearest
  std::vector<ParameterPart> parts;
};

// In gradient, coefficient, lr, step and, for stochastic rounding, rng; out parameter, `states` states (at
// most 2) and, where the plan has one, a working copy. Attributes: `segments`, begin, end (in elements of the
// unit) and whether weight decay applies, for every parameter; and `stochastic_rounding`, a stream for every
// parameter.
absl::StatusOr<ParameterOperands> ReadParameterOperands(const KernelOperands& operands,
                                                        const KernelAttributes& attributes, size_t states);

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
