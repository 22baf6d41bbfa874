#include "runtime/executor/state_at_rest.h"

#include <string_view>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/state/plan_state.h"

namespace ft {
namespace {

bool IsSlice(const proto::Plan& plan, int64_t buffer) {
  return plan.buffers(buffer).size().kind() == proto::SizeExpr::UNIT_SLICE;
}

StateAtRest StateIn(const proto::Plan& plan, const OperandResolver& resolver, uint32_t unit, int64_t buffer,
                    DType dtype) {
  StateAtRest weights;
  weights.data = static_cast<std::byte*>(static_cast<void*>(resolver.Address(buffer)));
  weights.dtype = dtype;
  weights.elements = resolver.Bytes(buffer) / SizeOf(dtype);
  weights.sliced = IsSlice(plan, buffer);
  if (weights.sliced) weights.begin = resolver.SliceBegin(unit);
  return weights;
}

}  // namespace

absl::StatusOr<StateAtRest> FindMasterParameters(const proto::Plan& plan, const BufferDTypes& dtypes,
                                                 const OperandResolver& resolver, uint32_t unit) {
  FT_ASSIGN_OR_RETURN(const DType dtype, MasterDType(plan, unit, dtypes));
  return StateIn(plan, resolver, unit, MasterBuffer(plan, unit), dtype);
}

StateAtRest FindState(const proto::Plan& plan, const OperandResolver& resolver, const StateBuffer& state) {
  return StateIn(plan, resolver, state.unit, BufferOfState(plan, state), state.dtype);
}

absl::StatusOr<std::optional<StateAtRest>> FindWorkingCopy(const proto::Plan& plan,
                                                           const BufferDTypes& dtypes,
                                                           const OperandResolver& resolver, uint32_t unit) {
  const int64_t buffer = FindUnitState(plan, unit, "parameters");
  if (buffer < 0 || FindUnitState(plan, unit, "master") < 0) return std::nullopt;
  FT_ASSIGN_OR_RETURN(const DType master, MasterDType(plan, unit, dtypes));
  const std::optional<DType> dtype = dtypes[static_cast<size_t>(buffer)];
  const bool is_twin =
      dtype == master && plan.buffers(static_cast<int>(buffer)).size().value() == SizeOf(master);
  if (dtype != DType::kBF16 && dtype != DType::kF16 && !is_twin) {
    return absl::FailedPreconditionError(absl::StrCat(
        "unit '", plan.units(unit).name(),
        "' of the plan has master weights, but its parameters are neither bf16 nor f16, nor of their type"));
  }
  return StateIn(plan, resolver, unit, buffer, *dtype);
}

}  // namespace ft
