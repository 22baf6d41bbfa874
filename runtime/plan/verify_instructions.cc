// Each instruction and port by itself.
#include "runtime/base/status_macros.h"
#include "runtime/plan/plan_clusters.h"
#include "runtime/plan/unit_parameters.h"
#include "runtime/plan/verify_all_to_all.h"
#include "runtime/plan/verify_operands.h"
#include "runtime/plan/verify_parts.h"
#include "runtime/plan/verify_place.h"
#include "runtime/plan/verify_transfers.h"

namespace ft {
namespace {

absl::Status VerifyAfter(const Place& place, const proto::Instruction& instruction) {
  const proto::Program& program = place.plan.programs(place.program);
  for (uint32_t earlier : instruction.after()) {
    if (earlier >= static_cast<uint32_t>(place.instruction)) {
      return place.Invalid("it waits for instruction ", earlier, ", which does not come before it");
    }
    if (program.instructions(earlier).stream() == instruction.stream()) {
      return place.Invalid("it waits for instruction ", earlier, " of its own stream");
    }
  }
  if (instruction.opcode() == proto::WAIT && instruction.after_size() == 0)
    return place.Invalid("it waits for nothing");
  return absl::OkStatus();
}

// What an update goes through element by element, its gradient and its results, lies in one unit, and padding
// is that of a whole flat buffer: so the parameters are known.
absl::Status VerifyUnitOf(const Place& place, const proto::Instruction& instruction) {
  const bool is_update = instruction.kernel() == kUpdateKernel;
  if (!is_update && instruction.kernel() != kPaddingKernel) return absl::OkStatus();
  int64_t unit = -1;
  const auto verify = [&](const proto::Operand& operand) {
    if (operand.buffer_plus_one() == 0) return absl::OkStatus();
    const uint32_t buffer = operand.buffer_plus_one() - 1;
    if (!IsFlat(place.plan, operand) || !(is_update || operand.whole()))
      return place.Invalid("it takes a flat buffer of a unit, but buffer ", BufferName(place.plan, buffer),
                           " is none");
    const int64_t other = place.plan.buffers(buffer).size().unit();
    if (unit != -1 && unit != other)
      return place.Invalid("buffer ", BufferName(place.plan, buffer), " is of unit '",
                           place.plan.units(other).name(), "', others are of '",
                           place.plan.units(unit).name(), "'");
    unit = other;
    return absl::OkStatus();
  };
  for (const proto::Operand& operand : instruction.out()) FT_RETURN_IF_ERROR(verify(operand));
  return is_update && instruction.in_size() > 0 ? verify(instruction.in(0)) : absl::OkStatus();
}

absl::Status VerifyKernel(const Place& place, const proto::Instruction& instruction) {
  if (instruction.kernel().empty()) return place.Invalid("a kernel without a name");
  const bool on_host = instruction.stream() == proto::HOST_COMPUTE;
  if (!on_host && instruction.stream() != proto::COMPUTE)
    return place.Invalid("a kernel runs on the compute stream, or on the host's");
  if (on_host && instruction.kernel() != kUpdateKernel)
    return place.Invalid("of all kernels ", kUpdateKernel, " alone runs on the host");
  if (on_host && instruction.workspace().buffer_plus_one() != 0)
    return place.Invalid("a kernel of the host has no workspace");
  const auto verify = [&](const proto::Operand& operand) {
    if (operand.buffer_plus_one() == 0) return absl::OkStatus();
    const uint32_t buffer = operand.buffer_plus_one() - 1;
    if (place.plan.buffers(buffer).space() == (on_host ? proto::HOST : proto::DEVICE))
      return absl::OkStatus();
    return place.Invalid(on_host ? "a kernel of the host cannot touch memory of the device"
                                 : "a kernel cannot touch host memory",
                         " (buffer ", BufferName(place.plan, buffer), ")");
  };
  for (const proto::Operand& operand : instruction.in()) FT_RETURN_IF_ERROR(verify(operand));
  for (const proto::Operand& operand : instruction.out()) FT_RETURN_IF_ERROR(verify(operand));
  FT_RETURN_IF_ERROR(verify(instruction.workspace()));
  if (RunsCluster(instruction.kernel()) != (instruction.cluster_plus_one() != 0))
    return place.Invalid("the kernel ", instruction.kernel(),
                         instruction.cluster_plus_one() == 0 ? " has no cluster to run" : " runs no cluster");
  FT_RETURN_IF_ERROR(VerifyUnitOf(place, instruction));
  return VerifyApart(place, instruction);
}

// WAIT and RELEASE run nothing.
absl::Status VerifyMark(const Place& place, const proto::Instruction& instruction) {
  const int operands = instruction.opcode() == proto::RELEASE ? 1 : 0;
  if (instruction.stream() != proto::COMPUTE)
    return place.Invalid("it stands on another stream than compute");
  if (instruction.in_size() > operands || instruction.out_size() > 0 ||
      instruction.workspace().buffer_plus_one() != 0) {
    return place.Invalid("it runs nothing, but has operands");
  }
  return absl::OkStatus();
}

// Only scratch may have another size on another device.
absl::Status VerifySameOnAllDevices(const Place& place, const proto::Operand& operand) {
  if (operand.buffer_plus_one() == 0 || !place.plan.buffers(operand.buffer_plus_one() - 1).has_cuda_bytes())
    return absl::OkStatus();
  return place.Invalid("buffer ", BufferName(place.plan, operand.buffer_plus_one() - 1),
                       ", whose size depends on the device, is used as more than scratch");
}

absl::Status VerifyInstruction(const Place& place, const proto::Instruction& instruction) {
  if (!proto::Opcode_IsValid(instruction.opcode()) || !proto::Stream_IsValid(instruction.stream()) ||
      !proto::Axis_IsValid(instruction.axis())) {
    return place.Invalid("unknown opcode, stream or axis");
  }
  if (instruction.unit_plus_one() > static_cast<uint32_t>(place.plan.units_size())) {
    return place.Invalid("it is about unit ", instruction.unit_plus_one() - 1, " of ",
                         place.plan.units_size());
  }
  if (instruction.cluster_plus_one() > static_cast<uint32_t>(place.plan.clusters_size())) {
    return place.Invalid("it runs cluster ", instruction.cluster_plus_one() - 1, " of ",
                         place.plan.clusters_size());
  }
  for (const auto* operands : {&instruction.in(), &instruction.out()}) {
    for (const proto::Operand& operand : *operands) {
      FT_RETURN_IF_ERROR(VerifyOperand(place, operand));
      FT_RETURN_IF_ERROR(VerifySameOnAllDevices(place, operand));
    }
  }
  FT_RETURN_IF_ERROR(VerifyOperand(place, instruction.workspace()));
  FT_RETURN_IF_ERROR(VerifyAfter(place, instruction));
  FT_RETURN_IF_ERROR(VerifyShares(place, instruction));
  if (IsTransfer(instruction.opcode())) return VerifyTransfer(place, instruction);
  if (instruction.opcode() != proto::KERNEL && instruction.cluster_plus_one() != 0)
    return place.Invalid("it runs a cluster, but is no kernel");
  if (instruction.axis() != proto::AXIS_NONE) return place.Invalid("it has an axis, but joins no ranks");
  return instruction.opcode() == proto::KERNEL ? VerifyKernel(place, instruction)
                                               : VerifyMark(place, instruction);
}

}  // namespace

absl::Status VerifyInstructions(const proto::Plan& plan) {
  for (int p = 0; p < plan.programs_size(); ++p) {
    const proto::Program& program = plan.programs(p);
    for (int i = 0; i < program.instructions_size(); ++i) {
      FT_RETURN_IF_ERROR(
          VerifyInstruction({.plan = plan, .program = p, .instruction = i}, program.instructions(i)));
    }
    for (const auto* ports : {&program.inputs(), &program.outputs()}) {
      for (const proto::Port& port : *ports) {
        const Place place{.plan = plan, .program = p, .port = &port};
        if (port.operand().buffer_plus_one() == 0) return place.Invalid("it has no buffer");
        FT_RETURN_IF_ERROR(VerifyOperand(place, port.operand()));
        if (plan.buffers(port.operand().buffer_plus_one() - 1).space() != proto::DEVICE)
          return place.Invalid("it lies in host memory");
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace ft
