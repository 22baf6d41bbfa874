// Where what a plan keeps of a unit is at rest. Addresses are in an arena: Executor::Read and Write get at
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "runtime/base/dtype.h"
#include "runtime/checkpoint/state/state_layout.h"
#include "runtime/executor/operand_resolver.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/unit_state.h"

namespace ft {

// What this rank holds: elements [begin, begin + elements) of the unit's flat buffer, padding included.
struct StateAtRest {
  std::byte* data = nullptr;
  DType dtype = DType::kF32;  // of weights: or kBF16, kF16
  uint64_t begin = 0;
  uint64_t elements = 0;
  bool sliced = false;  // over the shard axis; otherwise the same on all ranks

  uint64_t ElementBytes() const { return SizeOf(dtype); }
  // Of an element of the unit.
  std::byte* At(uint64_t element) const { return data + (element - begin) * ElementBytes(); }
};

// The weights that the optimizer updates: those of role "master", in fp32, or "parameters" where there are
// none, in fp32 or bf16. `dtypes` are DTypesOfBuffers of the plan, here and below. Errors: FailedPrecondition
// when the plan does not say where they are, or holds them in another type.
absl::StatusOr<StateAtRest> FindMasterParameters(const proto::Plan& plan, const BufferDTypes& dtypes,
                                                 const OperandResolver& resolver, uint32_t unit);

// Any state that StateOfPlan lists for the plan.
StateAtRest FindState(const proto::Plan& plan, const OperandResolver& resolver, const StateBuffer& state);

// The 16-bit weights that are computed with, where they are at rest beside the master ones. Errors:
// FailedPrecondition when nothing in the plan says which 16-bit type they have.
absl::StatusOr<std::optional<StateAtRest>> FindWorkingCopy(const proto::Plan& plan,
                                                           const BufferDTypes& dtypes,
                                                           const OperandResolver& resolver, uint32_t unit);

}  // namespace ft
