// Each instruction and port by itself.
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/base/dtype.h"
#include "runtime/base/status_macros.h"
#include "runtime/plan/describe.h"
#include "runtime/plan/mesh.h"
#include "runtime/plan/size_expr.h"
#include "runtime/plan/verify_phases.h"
#include "runtime/plan/verify_plan.h"

namespace ft {
namespace {

// Which instruction or port a message is about; the text is made only when it is needed.
struct Place {
  const proto::Plan& plan;
  int program;
  int instruction = -1;
  const proto::Port* port = nullptr;

  template <typename... Parts>
  absl::Status Invalid(const Parts&... parts) const {
    const std::string where = port != nullptr
                                  ? absl::StrCat(plan.programs(program).name(), ", port '", port->name(), "'")
                                  : InstructionPlace(plan, program, instruction);
    return absl::InvalidArgumentError(absl::StrCat("invalid plan: ", where, ": ", parts...));
  }
};

// Bytes of an operand with a shape. An absurd product saturates, so that it fits into no buffer.
uint64_t ShapeBytes(const proto::Operand& operand) {
  constexpr uint64_t kLimit = uint64_t{1} << 60;
  uint64_t bytes = SizeOf(static_cast<DType>(operand.dtype()));
  for (uint64_t extent : operand.shape()) {
    if (extent > kLimit || bytes > kLimit / extent) return kLimit;
    bytes *= extent;
  }
  return bytes;
}

absl::Status VerifyExtent(const Place& place, const proto::Operand& operand) {
  const uint32_t index = operand.buffer_plus_one() - 1;
  const proto::SizeExpr& size = place.plan.buffers(index).size();
  const uint64_t element = SizeOf(static_cast<DType>(operand.dtype()));
  const uint64_t smallest = SmallestSizeInBytes(place.plan, size);
  if (operand.whole()) {
    if (operand.offset() != 0 || operand.shape_size() != 0) {
      return place.Invalid("an operand that is the whole of buffer ", BufferName(place.plan, index),
                           " has an offset or a shape");
    }
    if ((size.kind() == proto::SizeExpr::CONSTANT ? smallest : size.value()) % element != 0) {
      return place.Invalid("buffer ", BufferName(place.plan, index), " does not hold whole elements of ",
                           proto::DType_Name(operand.dtype()));
    }
    return absl::OkStatus();
  }
  if (operand.shape_size() > kMaxOperandRank)
    return place.Invalid("an operand has ", operand.shape_size(), " dimensions");
  for (uint64_t extent : operand.shape()) {
    if (extent == 0)
      return place.Invalid("an operand in buffer ", BufferName(place.plan, index), " has a dimension of 0");
  }
  if (operand.offset() % element != 0) {
    return place.Invalid("an operand in buffer ", BufferName(place.plan, index),
                         " is not aligned to its elements");
  }
  const uint64_t bytes = ShapeBytes(operand);
  if (bytes > smallest || operand.offset() > smallest - bytes) {
    return place.Invalid("an operand of ", bytes, " bytes at ", operand.offset(), " leaves buffer ",
                         BufferName(place.plan, index), ", which may have only ", smallest, " bytes");
  }
  return absl::OkStatus();
}

absl::Status VerifyOperand(const Place& place, const proto::Operand& operand) {
  if (operand.buffer_plus_one() == 0) return absl::OkStatus();
  const uint32_t index = operand.buffer_plus_one() - 1;
  if (index >= static_cast<uint32_t>(place.plan.buffers_size())) {
    return place.Invalid("an operand is in buffer ", index, " of ", place.plan.buffers_size());
  }
  if (!proto::DType_IsValid(operand.dtype())) return place.Invalid("an operand is of an unknown type");
  FT_RETURN_IF_ERROR(VerifyExtent(place, operand));
  const proto::Buffer& buffer = place.plan.buffers(index);
  if (buffer.persistent()) return absl::OkStatus();
  if (place.port != nullptr)
    return place.Invalid("it is in buffer ", BufferName(place.plan, index), ", which does not persist");
  const uint32_t now = static_cast<uint32_t>(place.instruction);
  if (buffer.program() != static_cast<uint32_t>(place.program) || now < buffer.first() ||
      now > buffer.last()) {
    return place.Invalid("buffer ", BufferName(place.plan, index),
                         " does not live here; it lives from instruction ", buffer.first(), " to ",
                         buffer.last(), " of ", place.plan.programs(buffer.program()).name());
  }
  return absl::OkStatus();
}

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

// The whole of a buffer sized by a unit, of kind `kind`.
bool IsWhole(const proto::Plan& plan, const proto::Operand& operand, proto::SizeExpr::Kind kind) {
  return operand.buffer_plus_one() != 0 && operand.whole() &&
         plan.buffers(operand.buffer_plus_one() - 1).size().kind() == kind;
}

absl::Status VerifySliceAndWhole(const Place& place, const proto::Operand& slice,
                                 const proto::Operand& whole) {
  if (!IsWhole(place.plan, slice, proto::SizeExpr::UNIT_SLICE) ||
      !IsWhole(place.plan, whole, proto::SizeExpr::UNIT_FULL)) {
    return place.Invalid("it must join the whole slice and the whole flat buffer of a unit");
  }
  const proto::SizeExpr& a = place.plan.buffers(slice.buffer_plus_one() - 1).size();
  const proto::SizeExpr& b = place.plan.buffers(whole.buffer_plus_one() - 1).size();
  if (a.unit() != b.unit() || a.value() != b.value() || slice.dtype() != whole.dtype()) {
    return place.Invalid("its slice and its flat buffer are of different units or types");
  }
  return absl::OkStatus();
}

absl::Status VerifyCollective(const Place& place, const proto::Instruction& instruction) {
  const bool all_reduce = instruction.opcode() == proto::ALL_REDUCE;
  if (instruction.in_size() != 1 || instruction.in(0).buffer_plus_one() == 0 ||
      (all_reduce ? instruction.out_size() > 1 : instruction.out_size() != 1)) {
    return place.Invalid("a collective has one input", all_reduce ? "" : " and one output");
  }
  if (instruction.axis() == proto::AXIS_NONE) return place.Invalid("a collective needs an axis");
  if (instruction.stream() == proto::COMPUTE)
    return place.Invalid("a collective cannot run on the compute stream");
  const proto::DType dtype = instruction.in(0).dtype();
  if (instruction.opcode() == proto::ALL_GATHER || instruction.opcode() == proto::REDUCE_SCATTER) {
    if (instruction.axis() != proto::AXIS_SHARD) return place.Invalid("slices lie along the shard axis only");
    const bool gather = instruction.opcode() == proto::ALL_GATHER;
    return VerifySliceAndWhole(place, gather ? instruction.in(0) : instruction.out(0),
                               gather ? instruction.out(0) : instruction.in(0));
  }
  if (dtype == proto::I32 || dtype == proto::U8)
    return place.Invalid("all_reduce cannot sum ", proto::DType_Name(dtype));
  if (instruction.out_size() == 1 &&
      instruction.out(0).SerializeAsString() != instruction.in(0).SerializeAsString()) {
    return place.Invalid("all_reduce works in place, its output must be its input");
  }
  return absl::OkStatus();
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
  for (const proto::Operand& operand : instruction.in()) FT_RETURN_IF_ERROR(VerifyOperand(place, operand));
  for (const proto::Operand& operand : instruction.out()) FT_RETURN_IF_ERROR(VerifyOperand(place, operand));
  FT_RETURN_IF_ERROR(VerifyOperand(place, instruction.workspace()));
  FT_RETURN_IF_ERROR(VerifyAfter(place, instruction));
  switch (instruction.opcode()) {
    case proto::KERNEL:
      return instruction.kernel().empty() ? place.Invalid("a kernel without a name") : absl::OkStatus();
    case proto::ALL_GATHER:
    case proto::REDUCE_SCATTER:
    case proto::ALL_REDUCE:
      return VerifyCollective(place, instruction);
    default:
      return absl::OkStatus();
  }
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
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace ft
