// Where the parameters of units lie, as Plan.parameters says it and nothing else in a plan does.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/flat_layout.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

uint64_t ElementsOf(const proto::Parameter& parameter);

// By unit, each in the order of the flat buffer. Of a plan that is verified they do not overlap.
using UnitParameters = std::vector<std::vector<ParameterRange>>;
UnitParameters ParametersOfUnits(const proto::Plan& plan);

// The kernel that fills with 0 what of a whole flat buffer no parameter has.
inline constexpr char kPaddingKernel[] = "zero_padding";

// Whether an operand is all of a unit's flat buffer or a slice of it.
bool IsFlat(const proto::Plan& plan, const proto::Operand& operand);

}  // namespace ft
