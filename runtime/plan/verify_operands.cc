#include "runtime/plan/verify_operands.h"

#include <string_view>

#include "runtime/base/dtype.h"
#include "runtime/base/status_macros.h"
#include "runtime/plan/operand_extent.h"
#include "runtime/plan/size_expr.h"
#include "runtime/plan/verify_plan.h"

namespace ft {
namespace {

// All of a buffer, or this rank's slice of it.
absl::Status VerifyWhole(const Place& place, const proto::Operand& operand) {
  const uint32_t index = operand.buffer_plus_one() - 1;
  const proto::SizeExpr& size = place.plan.buffers(index).size();
  const std::string what = absl::StrCat("an operand that is the ", operand.whole() ? "whole" : "own slice",
                                        " of buffer ", BufferName(place.plan, index));
  if (operand.whole() && operand.own_slice()) return place.Invalid(what, " cannot be its own slice as well");
  if (operand.offset() != 0 || operand.shape_size() != 0)
    return place.Invalid(what, " has an offset or a shape");
  if (operand.own_slice() && size.kind() != proto::SizeExpr::UNIT_FULL)
    return place.Invalid(what, ", but only the flat buffer of a whole unit has slices");
  if (size.kind() == proto::SizeExpr::SHARE)
    return place.Invalid(what, ", which not every rank has, says no shape");
  const size_t element = SizeOf(static_cast<DType>(operand.dtype()));
  if (size.value() % element != 0 || place.plan.buffers(index).cuda_bytes() % element != 0) {
    return place.Invalid("buffer ", BufferName(place.plan, index), " does not hold whole elements of ",
                         proto::DType_Name(operand.dtype()));
  }
  return absl::OkStatus();
}

absl::Status VerifyShape(const Place& place, const proto::Operand& operand) {
  const uint32_t index = operand.buffer_plus_one() - 1;
  if (operand.shape_size() > kMaxOperandRank)
    return place.Invalid("an operand has ", operand.shape_size(), " dimensions");
  for (uint64_t extent : operand.shape()) {
    if (extent == 0)
      return place.Invalid("an operand in buffer ", BufferName(place.plan, index), " has a dimension of 0");
  }
  if (operand.offset() % SizeOf(static_cast<DType>(operand.dtype())) != 0) {
    return place.Invalid("an operand in buffer ", BufferName(place.plan, index),
                         " is not aligned to its elements");
  }
  const uint64_t smallest = SmallestBufferBytes(place.plan, place.plan.buffers(index));
  const uint64_t bytes = ExtentOf(place.plan, operand).value();
  if (bytes > smallest || operand.offset() > smallest - bytes) {
    return place.Invalid("an operand of ", bytes, " bytes at ", operand.offset(), " leaves buffer ",
                         BufferName(place.plan, index), ", which may have only ", smallest, " bytes");
  }
  return absl::OkStatus();
}

bool SharesBytes(const proto::Plan& plan, const proto::Operand& a, const proto::Operand& b) {
  if (a.buffer_plus_one() == 0 || a.buffer_plus_one() != b.buffer_plus_one()) return false;
  const Region of_a = RegionOf(plan, a), of_b = RegionOf(plan, b);
  // Where the own slice lies differs from rank to rank.
  if (of_a.own || of_b.own) return true;
  return of_a.bytes.begin < of_b.bytes.end && of_b.bytes.begin < of_a.bytes.end;
}

// Both are the same bytes, of the same type.
bool InPlace(const proto::Plan& plan, const proto::Operand& in, const proto::Operand& out) {
  if (in.dtype() != out.dtype()) return false;
  const Region of_in = RegionOf(plan, in), of_out = RegionOf(plan, out);
  if (of_in.own || of_out.own) return of_in.own && of_out.own;
  return of_in.bytes.begin == of_out.bytes.begin && of_in.bytes.end == of_out.bytes.end;
}

absl::Status NotApart(const Place& place, const proto::Operand& operand, std::string_view what) {
  return place.Invalid(std::string(what), " share bytes of buffer ",
                       BufferName(place.plan, operand.buffer_plus_one() - 1));
}

}  // namespace

absl::Status VerifyApart(const Place& place, const proto::Instruction& instruction) {
  const proto::Plan& plan = place.plan;
  const proto::Operand& workspace = instruction.workspace();
  for (int i = 0; i < instruction.out_size(); ++i) {
    const proto::Operand& out = instruction.out(i);
    for (int j = 0; j < i; ++j) {
      if (SharesBytes(plan, out, instruction.out(j))) return NotApart(place, out, "two results");
    }
    for (const proto::Operand& in : instruction.in()) {
      if (SharesBytes(plan, in, out) && !InPlace(plan, in, out))
        return NotApart(place, out, "an operand and a result that is not in its place");
    }
    if (SharesBytes(plan, workspace, out)) return NotApart(place, out, "the workspace and a result");
  }
  for (const proto::Operand& in : instruction.in()) {
    if (SharesBytes(plan, workspace, in)) return NotApart(place, in, "the workspace and an operand");
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
  const bool shaped = !operand.whole() && !operand.own_slice();
  FT_RETURN_IF_ERROR(shaped ? VerifyShape(place, operand) : VerifyWhole(place, operand));
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

}  // namespace ft
