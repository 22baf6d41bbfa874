#include "runtime/executor/master_parameters.h"

#include <string_view>

#include "absl/strings/str_cat.h"
#include "runtime/base/round_float.h"

namespace ft {
namespace {

// The buffer of a unit's role; -1: none.
int64_t FindBuffer(const proto::Plan& plan, uint32_t unit, std::string_view role) {
  for (const proto::Plan::UnitState& state : plan.unit_states()) {
    if (state.unit() == unit && state.role() == role) return state.buffer();
  }
  return -1;
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

}  // namespace

absl::StatusOr<MasterParameters> FindMasterParameters(const proto::Plan& plan,
                                                      const OperandResolver& resolver, uint32_t unit) {
  int64_t buffer = FindBuffer(plan, unit, "master");
  if (buffer < 0) buffer = FindBuffer(plan, unit, "parameters");
  if (buffer < 0 || plan.buffers(buffer).size().value() != sizeof(float)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the plan has no fp32 parameters at rest for unit '", plan.units(unit).name(), "'"));
  }
  MasterParameters master;
  master.data = reinterpret_cast<float*>(resolver.Address(buffer));
  master.elements = resolver.Bytes(buffer) / sizeof(float);
  master.sliced = IsSlice(plan, buffer);
  if (master.sliced) master.begin = resolver.SliceBegin(unit);
  return master;
}

absl::StatusOr<std::optional<WorkingCopy>> FindWorkingCopy(const proto::Plan& plan,
                                                           const OperandResolver& resolver, uint32_t unit) {
  const int64_t buffer = FindBuffer(plan, unit, "parameters");
  if (buffer < 0 || FindBuffer(plan, unit, "master") < 0) return std::nullopt;
  const std::optional<DType> dtype = DTypeOf(plan, buffer);
  if (dtype != DType::kBF16 && dtype != DType::kF16) {
    return absl::FailedPreconditionError(
        absl::StrCat("unit '", plan.units(unit).name(),
                     "' of the plan has master weights, but its parameters are neither bf16 nor f16"));
  }
  return WorkingCopy{.data = reinterpret_cast<uint16_t*>(resolver.Address(buffer)),
                     .dtype = *dtype,
                     .begin = IsSlice(plan, buffer) ? resolver.SliceBegin(unit) : 0,
                     .elements = resolver.Bytes(buffer) / sizeof(uint16_t)};
}

void WorkingCopy::Round(const float* values, uint16_t* rounded, uint64_t count) const {
  for (uint64_t i = 0; i < count; ++i)
    rounded[i] = dtype == DType::kBF16 ? RoundToBF16(values[i]) : RoundToF16(values[i]);
}

}  // namespace ft
