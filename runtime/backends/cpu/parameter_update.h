// What the kernels of optimizers share: their operands, the parts of parameters that this rank holds, and
// 16-bit gradients and working copies beside the f32 arithmetic.
#pragma once

#include <cmath>
#include <vector>

#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/routines/convert.h"

namespace ft::cpu {

// Part of the slice [begin, end) that lies inside one parameter.
struct ParameterPiece {
  int64_t begin;
  int64_t end;
  bool decay;
};

// One instruction's operands: in gradient (f32, bf16 or f16), coefficient, lr, step; out parameter (f32),
// `states` states (f32) and, where the plan has one, a working copy of the parameter (bf16 or f16).
struct ParameterUpdate {
  const float* coefficient;
  const float* lr;
  const int64_t* step;
  Tensor gradient;
  Tensor parameter;
  Tensor working_copy;  // absent when there is none
  std::vector<ParameterPiece> pieces;
  int threads;
  const ConvertRoutines* convert;

  // Whether the step is not to be applied: a coefficient of NaN (ft.clip_coefficient).
  bool Skipped() const { return std::isnan(*coefficient); }

  // routine(gradient, begin, n, decay) for all elements of all pieces: a pointer to n gradients in f32, and
  // where these elements begin in the parameter and the states. The working copy is written while the
  // parameter is in the cache.
  template <typename Routine>
  void Run(const Routine& routine) const;
};

// Reads and checks the operands and the attribute `segments`: begin, end (in elements of the unit) and
// whether weight decay applies, for every parameter.
absl::StatusOr<ParameterUpdate> ReadParameterUpdate(const KernelContext& context, size_t states);

namespace internal {
inline constexpr int64_t kUpdateChunk = 2048;
}  // namespace internal

template <typename Routine>
void ParameterUpdate::Run(const Routine& routine) const {
  const bool narrow = gradient.dtype != DType::kF32;
  const auto to_float = convert->to_float[FloatIndex(gradient.dtype)];
  const auto from_float = convert->from_float[FloatIndex(working_copy.dtype)];
  ParallelFor(static_cast<int64_t>(pieces.size()), threads, [&](int64_t i) {
    const ParameterPiece& piece = pieces[i];
    if (!narrow && !working_copy.present()) {
      routine(gradient.as<float>() + piece.begin, piece.begin, piece.end - piece.begin, piece.decay);
      return;
    }
    float chunk[internal::kUpdateChunk];
    for (int64_t at = piece.begin; at < piece.end; at += internal::kUpdateChunk) {
      const int64_t n = std::min(internal::kUpdateChunk, piece.end - at);
      if (narrow) to_float(gradient.data, at, n, chunk);
      routine(narrow ? chunk : gradient.as<float>() + at, at, n, piece.decay);
      if (working_copy.present()) from_float(parameter.as<float>() + at, working_copy.data, at, n);
    }
  });
}

}  // namespace ft::cpu
