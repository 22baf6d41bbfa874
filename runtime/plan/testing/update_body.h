// AdamW by hand, as plans have it: for tests of what runs updates, without the compiler.
#pragma once

#include "runtime/base/cluster.h"

namespace ft {

// Element types in memory; of the new parameter f32 where it is rounded stochastically.
struct UpdateTypes {
  DType gradient = DType::kF32;
  DType parameter = DType::kF32;
  DType result = DType::kF32;
  DType copy = DType::kF32;  // f32: there is none
};

// Of ft.update_scalars, with beta 0.9 and 0.95.
inline constexpr char kAdamwFormulas[] = "clip; 1 - lr * weight_decay; lr / (1 - 0.9^t); sqrt(1 - 0.95^t)";
inline constexpr int kAdamwScalars = 4;

ClusterBody AdamwBody(const UpdateTypes& types = {});

}  // namespace ft
