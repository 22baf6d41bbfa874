#include "runtime/plan/unit_state.h"

#include "absl/strings/str_cat.h"

namespace ft {

int64_t FindUnitState(const proto::Plan& plan, uint32_t unit, std::string_view role) {
  for (const proto::Plan::UnitState& state : plan.unit_states()) {
    if (state.unit() == unit && state.role() == role) return state.buffer();
  }
  return -1;
}

int64_t MasterBuffer(const proto::Plan& plan, uint32_t unit) {
  const int64_t master = FindUnitState(plan, unit, "master");
  return master >= 0 ? master : FindUnitState(plan, unit, "parameters");
}

BufferDTypes DTypesOfBuffers(const proto::Plan& plan) {
  BufferDTypes dtypes(static_cast<size_t>(plan.buffers_size()));
  for (const proto::Program& program : plan.programs()) {
    for (const proto::Instruction& instruction : program.instructions()) {
      for (const auto* operands : {&instruction.in(), &instruction.out()}) {
        for (const proto::Operand& operand : *operands) {
          if (operand.buffer_plus_one() == 0) continue;
          std::optional<DType>& dtype = dtypes[operand.buffer_plus_one() - 1];
          if (!dtype.has_value()) dtype = static_cast<DType>(operand.dtype());
        }
      }
    }
  }
  return dtypes;
}

absl::StatusOr<DType> MasterDType(const proto::Plan& plan, uint32_t unit, const BufferDTypes& dtypes) {
  const int64_t buffer = MasterBuffer(plan, unit);
  const uint64_t bytes = buffer < 0 ? 0 : plan.buffers(static_cast<int>(buffer)).size().value();
  if (bytes == sizeof(float)) return DType::kF32;
  const std::optional<DType> dtype = buffer < 0 ? std::nullopt : dtypes[static_cast<size_t>(buffer)];
  if (bytes == sizeof(uint16_t) && (dtype == DType::kBF16 || dtype == DType::kF16)) return *dtype;
  return absl::FailedPreconditionError(
      absl::StrCat("the plan has no fp32, bf16 or fp16 parameters at rest for unit '",
                   plan.units(static_cast<int>(unit)).name(), "'"));
}

}  // namespace ft
