#include "runtime/plan/verify_all_to_all.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "runtime/base/status_macros.h"
#include "runtime/plan/all_to_all.h"
#include "runtime/plan/unit_parameters.h"

namespace ft {
namespace {

using Operands = google::protobuf::RepeatedPtrField<proto::Operand>;

bool IsShare(const Place& place, const proto::Operand& operand) {
  return operand.buffer_plus_one() != 0 && BufferOf(place, operand).size().kind() == proto::SizeExpr::SHARE;
}

// One whole slice for a unit, on the device.
absl::Status VerifySlices(const Place& place, const Operands& slices, std::set<uint32_t>& units) {
  for (const proto::Operand& slice : slices) {
    const proto::Buffer& buffer = BufferOf(place, slice);
    if (!slice.whole() || buffer.size().kind() != proto::SizeExpr::UNIT_SLICE ||
        buffer.space() != proto::DEVICE)
      return place.Invalid("it moves parameters of slices, and buffer ", NameOf(place, slice), " is none");
    if (slice.dtype() != slices[0].dtype())
      return place.Invalid("slices ", NameOf(place, slices[0]), " and ", NameOf(place, slice),
                           " are of different types");
    if (!units.insert(buffer.size().unit()).second)
      return place.Invalid("it has two slices of a unit (buffer ", NameOf(place, slice), ")");
  }
  return absl::OkStatus();
}

// Index 0, 1, ... of each group, and each in a buffer of its own.
absl::Status VerifyGroups(const Place& place, const Operands& wholes) {
  std::set<uint32_t> buffers;
  uint32_t index = 0, count = 0;
  for (const proto::Operand& whole : wholes) {
    const proto::SizeExpr& size = BufferOf(place, whole).size();
    if (!IsShare(place, whole) || size.index() != index || (index > 0 && size.count() != count))
      return place.Invalid("buffer ", NameOf(place, whole),
                           " is not the next of a group that ranks have in turn");
    if (!buffers.insert(whole.buffer_plus_one()).second)
      return place.Invalid("it moves buffer ", NameOf(place, whole), " twice");
    count = size.count();
    index = index + 1 == count ? 0 : index + 1;
  }
  if (index != 0) return place.Invalid("it moves ", index, " of a group of ", count);
  return absl::OkStatus();
}

absl::Status VerifyParameter(const Place& place, const proto::Operand& whole, uint32_t number,
                             const std::set<uint32_t>& units) {
  if (number >= static_cast<uint32_t>(place.plan.parameters_size()))
    return place.Invalid("it moves parameter ", number, " of ", place.plan.parameters_size());
  const proto::Parameter& parameter = place.plan.parameters(static_cast<int>(number));
  if (!units.contains(parameter.unit()))
    return place.Invalid("it moves parameter '", parameter.name(), "', but no slice of its unit");
  const bool is_alike = std::equal(whole.shape().begin(), whole.shape().end(), parameter.shape().begin(),
                                   parameter.shape().end());
  if (!is_alike || whole.whole() || whole.own_slice())
    return place.Invalid("buffer ", NameOf(place, whole), " has not the shape of parameter '",
                         parameter.name(), "'");
  return absl::OkStatus();
}

}  // namespace

absl::Status VerifyAllToAll(const Place& place, const proto::Instruction& instruction) {
  if (instruction.out().empty()) return place.Invalid("it has no results");
  const bool to_wholes = IsShare(place, instruction.out(0));
  const Operands& slices = to_wholes ? instruction.in() : instruction.out();
  const Operands& wholes = to_wholes ? instruction.out() : instruction.in();
  std::set<uint32_t> units;
  FT_RETURN_IF_ERROR(VerifySlices(place, slices, units));
  FT_RETURN_IF_ERROR(VerifyGroups(place, wholes));
  const std::vector<uint32_t> parameters = MovedParameters(instruction);
  if (parameters.size() != static_cast<size_t>(wholes.size()))
    return place.Invalid("it names ", parameters.size(), " parameters for ", wholes.size());
  if (std::set<uint32_t>(parameters.begin(), parameters.end()).size() != parameters.size())
    return place.Invalid("it moves a parameter twice");
  for (int i = 0; i < wholes.size(); ++i) {
    FT_RETURN_IF_ERROR(VerifyParameter(place, wholes[i], parameters[static_cast<size_t>(i)], units));
    if (wholes[i].dtype() != slices[0].dtype())
      return place.Invalid("buffer ", NameOf(place, wholes[i]), " is of another type than the slices");
    const proto::Operand& first = wholes[i - static_cast<int>(BufferOf(place, wholes[i]).size().index())];
    if (!std::equal(first.shape().begin(), first.shape().end(), wholes[i].shape().begin(),
                    wholes[i].shape().end()))
      return place.Invalid("buffers ", NameOf(place, first), " and ", NameOf(place, wholes[i]),
                           " of a group have different shapes");
  }
  return absl::OkStatus();
}

absl::Status VerifyShares(const Place& place, const proto::Instruction& instruction) {
  if (instruction.opcode() == proto::ALL_TO_ALL) return absl::OkStatus();
  const bool is_kernel = instruction.opcode() == proto::KERNEL;
  const proto::Operand* share = IsShare(place, instruction.workspace()) ? &instruction.workspace() : nullptr;
  bool is_result = false;
  for (const Operands* operands : {&instruction.in(), &instruction.out()})
    for (const proto::Operand& operand : *operands) {
      if (!IsShare(place, operand)) continue;
      if (share == nullptr) share = &operand;
      is_result |= operands == &instruction.out();
      const proto::SizeExpr &a = BufferOf(place, *share).size(), &b = BufferOf(place, operand).size();
      if (a.index() != b.index() || a.count() != b.count())
        return place.Invalid("it touches buffers ", NameOf(place, *share), " and ", NameOf(place, operand),
                             ", which not the same ranks have");
    }
  if (share == nullptr) return absl::OkStatus();
  if (!is_kernel || !is_result || share == &instruction.workspace())
    return place.Invalid("it touches buffer ", NameOf(place, *share),
                         ", which not every rank has, and is no kernel that makes such");
  for (const proto::Operand& out : instruction.out())
    if (out.buffer_plus_one() != 0 && !IsShare(place, out))
      return place.Invalid("it writes buffer ", NameOf(place, out),
                           " on every rank, but not every rank has buffer ", NameOf(place, *share));
  return absl::OkStatus();
}

}  // namespace ft
