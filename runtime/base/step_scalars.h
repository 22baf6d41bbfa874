// Numbers of a training step that updates of weights read: "lr / (1 - 0.9^t)". Computed once a step, in f64,
// and rounded to f32.
//
// Formulas are in terms of clip (the coefficient of the gradient), lr, t (the number of the step, from 1),
// weight_decay (0 for weights that do not decay) and inverse_ranks (1 / the number of ranks), with + - * / ^,
// sqrt, min and max.
#pragma once

#include <cstdint>

namespace ft {

enum class ScalarOpKind : uint8_t {
  kNumber,
  kClip,
  kLr,
  kT,
  kWeightDecay,
  kInverseRanks,
  kAdd,
  kSub,
  kMul,
  kDiv,
  kPow,
  kNeg,
  kSqrt,
  kMin,
  kMax
};

struct ScalarOp {
  ScalarOpKind kind;
  double number;  // of kNumber
};

inline constexpr int kMaxStepScalars = 12;
inline constexpr int kMaxScalarOps = 120;
inline constexpr int kMaxScalarStack = 16;

// Of all formulas, one after the other, each in the order of a stack machine: formula k is
// [ends[k - 1], ends[k]). What device code is given.
struct StepScalars {
  int count = 0;
  int ends[kMaxStepScalars] = {};
  ScalarOp ops[kMaxScalarOps] = {};
  double weight_decay = 0;
};

}  // namespace ft
