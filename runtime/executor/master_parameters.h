// The master copy of a unit's parameters at rest.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "runtime/executor/operand_resolver.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// What this rank holds: elements [begin, begin + elements) of the unit's flat buffer, padding included.
struct MasterParameters {
  float* data = nullptr;
  uint64_t begin = 0;
  uint64_t elements = 0;
};

// Errors: FailedPrecondition when the plan does not say where they are, or holds them in another type than
// fp32.
absl::StatusOr<MasterParameters> FindMasterParameters(const proto::Plan& plan,
                                                      const OperandResolver& resolver, uint32_t unit);

}  // namespace ft
