// Where a unit's parameters are at rest. Addresses are in an arena: Executor::Read and Write get at them.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "runtime/base/dtype.h"
#include "runtime/executor/operand_resolver.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// What this rank holds: elements [begin, begin + elements) of the unit's flat buffer, padding included.
struct MasterParameters {
  float* data = nullptr;
  uint64_t begin = 0;
  uint64_t elements = 0;
  bool sliced = false;  // over the shard axis; otherwise the same on all ranks
};

// The fp32 weights: those of role "master", or "parameters" where there are none. Errors: FailedPrecondition
// when the plan does not say where they are, or holds them in another type than fp32.
absl::StatusOr<MasterParameters> FindMasterParameters(const proto::Plan& plan,
                                                      const OperandResolver& resolver, uint32_t unit);

// The 16-bit weights that are computed with, where they are at rest beside the master ones.
struct WorkingCopy {
  uint16_t* data = nullptr;
  DType dtype = DType::kBF16;  // or kF16
  uint64_t begin = 0;
  uint64_t elements = 0;

  // To this type, to nearest, ties to even.
  void Round(const float* values, uint16_t* rounded, uint64_t count) const;
};

// Errors: FailedPrecondition when nothing in the plan says which 16-bit type they have.
absl::StatusOr<std::optional<WorkingCopy>> FindWorkingCopy(const proto::Plan& plan,
                                                           const OperandResolver& resolver, uint32_t unit);

}  // namespace ft
