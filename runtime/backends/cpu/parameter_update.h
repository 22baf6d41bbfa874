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
  int64_t first;  // the element of the parameter at `begin`
  bool decay;
  uint32_t stream;  // of stochastic rounding
};

// One instruction's operands: in gradient (f32, bf16 or f16), coefficient, lr, step and, for stochastic
// rounding, rng; out parameter (f32 or bf16), `states` states (f32) and, where the plan has one, a working
// copy of an f32 parameter (bf16 or f16).
struct ParameterUpdate {
  const float* coefficient;
  const float* lr;
  const int64_t* step;
  const int64_t* rng = nullptr;  // null: a bf16 parameter is rounded to nearest
  Tensor gradient;
  Tensor parameter;
  Tensor working_copy;  // absent when there is none
  std::vector<ParameterPiece> pieces;
  int threads;
  const Routines* routines;

  // Whether the step is not to be applied: a coefficient of NaN (ft.clip_coefficient).
  bool Skipped() const { return std::isnan(*coefficient); }

  // Instead of Run where the step is not applied: the working copy of the parameter as it is. Where
  // parameters live in host memory the copy is a fresh buffer, which goes there next.
  void RefreshCopy() const;

  // routine(gradient, parameter, begin, n, decay) for all elements of all pieces: pointers to n gradients and
  // to n parameters to be updated, both in f32, and where these elements begin in the states. 16-bit
  // parameters and copies are written while the f32 ones are in the cache.
  template <typename Routine>
  void Run(const Routine& routine) const;

 private:
  // Elements [at, at + n) of the slice, inside `piece`.
  void StoreRounded(const ParameterPiece& piece, const float* values, int64_t at, int64_t n) const;
};

// Reads and checks the operands and the attributes `segments`, begin, end (in elements of the unit) and
// whether weight decay applies, for every parameter; and `stochastic_rounding`, a stream for every parameter.
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
  ParallelFor(static_cast<int64_t>(pieces.size()), threads, [&](int64_t i) {
    const ParameterPiece& piece = pieces[i];
    if (!narrow && !rounded && !working_copy.present()) {
      routine(gradient.as<float>() + piece.begin, parameter.as<float>() + piece.begin, piece.begin,
              piece.end - piece.begin, piece.decay);
      return;
    }
    float gradients[internal::kUpdateChunk], values[internal::kUpdateChunk];
    for (int64_t at = piece.begin; at < piece.end; at += internal::kUpdateChunk) {
      const int64_t n = std::min(internal::kUpdateChunk, piece.end - at);
      if (narrow) to_float(gradient.data, at, n, gradients);
      if (rounded) load(parameter.data, at, n, values);
      float* updated = rounded ? values : parameter.as<float>() + at;
      routine(narrow ? gradients : gradient.as<float>() + at, updated, at, n, piece.decay);
      if (rounded) StoreRounded(piece, values, at, n);
      if (working_copy.present()) from_float(updated, working_copy.data, at, n);
    }
  });
}

}  // namespace ft::cpu
