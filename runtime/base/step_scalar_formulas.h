// The formulas of step_scalars.h, read and evaluated.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/base/step_scalars.h"

namespace ft {

// `text`: formulas with semicolons between. InvalidArgument says what is wrong with it.
absl::StatusOr<StepScalars> ReadStepScalars(std::string_view text, double weight_decay);

// Formula `index`, for weights that decay or do not. `step`: steps applied so far.
double StepScalarAt(const StepScalars& scalars, int index, bool decays, float clip, float lr, int64_t step);

// Whether it is the same number in every step, for all weights.
bool IsConstant(const StepScalars& scalars, int index);

}  // namespace ft
