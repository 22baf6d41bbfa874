// The formulas of step_scalars.h, read and evaluated.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/base/step_scalars.h"

namespace ft {

// `text`: formulas with semicolons between. InvalidArgument says what is wrong with it.
absl::StatusOr<StepScalars> ReadStepScalars(std::string_view text, double weight_decay);

// What formulas are in terms of in a step.
struct StepValues {
  float clip = 0;
  float lr = 0;
  int64_t step = 0;  // steps applied so far
  float inverse_ranks = 1;
};

// Formula `index`, for weights that decay or do not.
double StepScalarAt(const StepScalars& scalars, int index, bool decays, const StepValues& values);

// Whether it is the same number in every step, for all weights.
bool IsConstant(const StepScalars& scalars, int index);

// Whether a formula names inverse_ranks.
bool UsesInverseRanks(const StepScalars& scalars);

}  // namespace ft
