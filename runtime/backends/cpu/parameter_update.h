// What the kernels of optimizers share: their operands, in pieces for threads, and 16-bit gradients and
// working copies beside the f32 arithmetic.
#pragma once

#include <cmath>

#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/routines/convert.h"
#include "runtime/device/parameter_operands.h"

namespace ft::cpu {

// One instruction's operands; its parts have at most kGrain elements each.
struct ParameterUpdate : ParameterOperands {
  int threads = 1;
  const Routines* routines = nullptr;

  // Whether the step is not to be applied: a coefficient of NaN (ft.clip_coefficient).
  bool Skipped() const { return std::isnan(*coefficient); }

  // Instead of Run where the step is not applied: the working copy of the parameter as it is. Where
  // parameters live in host memory the copy is a fresh buffer, which goes there next.
  void RefreshCopy() const;

  // routine(gradient, parameter, begin, n, decay) for all elements of all parts: pointers to n gradients and
  // to n parameters to be updated, both in f32, and where these elements begin in the states. 16-bit
  // parameters and copies are written while the f32 ones are in the cache.
  template <typename Routine>
  void Run(const Routine& routine) const;

 private:
  // Elements [at, at + n) of the slice, inside `piece`.
  void StoreRounded(const ParameterPart& piece, const float* values, int64_t at, int64_t n) const;
};

absl::StatusOr<ParameterUpdate> ReadParameterUpdate(const KernelContext& context, size_t states);

namespace internal {
inline constexpr int64_t kUpdateChunk = 2048;
}  // namespace internal

template <typename Routine>
void ParameterUpdate::Run(const Routine& routine) const {
  const bool narrow = gradient.dtype != DType::kF32, rounded = parameter.dtype != DType::kF32;
  const ConvertRoutines& convert = routines->convert;
  const auto to_float = convert.to_float[FloatIndex(gradient.dtype)];
  const auto load = convert.to_float[FloatIndex(parameter.dtype)];
  const auto from_float = convert.from_float[FloatIndex(working_copy.dtype)];
  ParallelFor(static_cast<int64_t>(parts.size()), threads, [&](int64_t i) {
    const ParameterPart& piece = parts[i];
    if (!narrow && !rounded && !working_copy.present()) {
      routine(gradient.as<float>() + piece.begin, parameter.as<float>() + piece.begin, piece.begin,
              piece.end - piece.begin, piece.decays);
      return;
    }
    float gradients[internal::kUpdateChunk], values[internal::kUpdateChunk];
    for (int64_t at = piece.begin; at < piece.end; at += internal::kUpdateChunk) {
      const int64_t n = std::min(internal::kUpdateChunk, piece.end - at);
      if (narrow) to_float(gradient.data, at, n, gradients);
      if (rounded) load(parameter.data, at, n, values);
      float* updated = rounded ? values : parameter.as<float>() + at;
      routine(narrow ? gradients : gradient.as<float>() + at, updated, at, n, piece.decays);
      if (rounded) StoreRounded(piece, values, at, n);
      if (working_copy.present()) from_float(updated, working_copy.data, at, n);
    }
  });
}

}  // namespace ft::cpu
