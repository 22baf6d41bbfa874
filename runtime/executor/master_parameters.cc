#include "runtime/executor/master_parameters.h"

#include <cstring>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "runtime/base/round_float.h"
#include "runtime/base/status_macros.h"

namespace ft {
namespace {

// The buffer of a unit's role; -1: none.
int64_t FindBuffer(const proto::Plan& plan, uint32_t unit, std::string_view role) {
  for (const proto::Plan::UnitState& state : plan.unit_states()) {
    if (state.unit() == unit && state.role() == role) return state.buffer();
  }
  return -1;
}

// Of the weights that the optimizer updates; -1: none.
int64_t MasterBuffer(const proto::Plan& plan, uint32_t unit) {
  const int64_t master = FindBuffer(plan, unit, "master");
  return master >= 0 ? master : FindBuffer(plan, unit, "parameters");
}

bool IsSlice(const proto::Plan& plan, int64_t buffer) {
  return plan.buffers(buffer).size().kind() == proto::SizeExpr::UNIT_SLICE;
}

// The type in which any instruction takes or gives the buffer.
std::optional<DType> DTypeOf(const proto::Plan& plan, int64_t buffer) {
  for (const proto::Program& program : plan.programs()) {
    for (const proto::Instruction& instruction : program.instructions()) {
      for (const auto* operands : {&instruction.in(), &instruction.out()}) {
        for (const proto::Operand& operand : *operands) {
          if (operand.buffer_plus_one() == buffer + 1) return static_cast<DType>(operand.dtype());
        }
      }
    }
  }
  return std::nullopt;
}

WeightsAtRest WeightsIn(const proto::Plan& plan, const OperandResolver& resolver, uint32_t unit,
                        int64_t buffer, DType dtype) {
  WeightsAtRest weights;
  weights.data = static_cast<std::byte*>(static_cast<void*>(resolver.Address(buffer)));
  weights.dtype = dtype;
  weights.elements = resolver.Bytes(buffer) / SizeOf(dtype);
  weights.sliced = IsSlice(plan, buffer);
  if (weights.sliced) weights.begin = resolver.SliceBegin(unit);
  return weights;
}

}  // namespace

absl::StatusOr<DType> MasterDType(const proto::Plan& plan, uint32_t unit) {
  const int64_t buffer = MasterBuffer(plan, unit);
  const bool separate = FindBuffer(plan, unit, "master") >= 0;
  const uint64_t bytes = buffer < 0 ? 0 : plan.buffers(buffer).size().value();
  if (bytes == sizeof(float)) return DType::kF32;
  if (bytes == sizeof(uint16_t) && !separate && DTypeOf(plan, buffer) == DType::kBF16) return DType::kBF16;
  return absl::FailedPreconditionError(absl::StrCat(
      "the plan has no fp32 or bf16 parameters at rest for unit '", plan.units(unit).name(), "'"));
}

absl::StatusOr<WeightsAtRest> FindMasterParameters(const proto::Plan& plan, const OperandResolver& resolver,
                                                   uint32_t unit) {
  FT_ASSIGN_OR_RETURN(const DType dtype, MasterDType(plan, unit));
  return WeightsIn(plan, resolver, unit, MasterBuffer(plan, unit), dtype);
}

absl::StatusOr<std::optional<WeightsAtRest>> FindWorkingCopy(const proto::Plan& plan,
                                                             const OperandResolver& resolver, uint32_t unit) {
  const int64_t buffer = FindBuffer(plan, unit, "parameters");
  if (buffer < 0 || FindBuffer(plan, unit, "master") < 0) return std::nullopt;
  const std::optional<DType> dtype = DTypeOf(plan, buffer);
  if (dtype != DType::kBF16 && dtype != DType::kF16) {
    return absl::FailedPreconditionError(
        absl::StrCat("unit '", plan.units(unit).name(),
                     "' of the plan has master weights, but its parameters are neither bf16 nor f16"));
  }
  return WeightsIn(plan, resolver, unit, buffer, *dtype);
}

void WeightsAtRest::Round(const float* values, std::byte* rounded, uint64_t count) const {
  if (dtype == DType::kF32) {
    std::memcpy(rounded, values, count * sizeof(float));
    return;
  }
  for (uint64_t i = 0; i < count; ++i) {
    const uint16_t bits = dtype == DType::kBF16 ? RoundToBF16(values[i]) : RoundToF16(values[i]);
    std::memcpy(rounded + i * sizeof(bits), &bits, sizeof(bits));
  }
}

}  // namespace ft
