#include "runtime/plan/verify_transfers.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "absl/strings/ascii.h"
#include "runtime/base/status_macros.h"
#include "runtime/plan/mesh.h"
#include "runtime/plan/operand_extent.h"
#include "runtime/plan/verify_all_to_all.h"

namespace ft {
namespace {

std::string AxisName(proto::Axis axis) {
  switch (axis) {
    case proto::AXIS_SHARD:
      return "shard";
    case proto::AXIS_REPLICA:
      return "replica";
    case proto::AXIS_WORLD:
      return "world";
    default:
      return "none";
  }
}

//===----------------------------------------------------------------------===//
// The pairs of a bucket
//===----------------------------------------------------------------------===//

absl::Status VerifyCounts(const Place& place, const proto::Instruction& instruction) {
  const bool in_place = instruction.opcode() == proto::ALL_REDUCE;
  if (instruction.in_size() == 0) return place.Invalid("it moves nothing");
  const bool makes_pairs = instruction.opcode() != proto::ALL_TO_ALL;
  if (makes_pairs && instruction.out_size() != (in_place ? 0 : instruction.in_size())) {
    return place.Invalid("it has ", instruction.in_size(), " inputs and ", instruction.out_size(),
                         " outputs, ", in_place ? "but works in place" : "which make no pairs");
  }
  for (const auto* operands : {&instruction.in(), &instruction.out()}) {
    for (const proto::Operand& operand : *operands) {
      if (operand.buffer_plus_one() == 0) return place.Invalid("one of its operands is absent");
    }
  }
  return absl::OkStatus();
}

// Pairs move at the same time, so none may write what another touches. Only the own slice of a whole may be
// both ends of one pair.
absl::Status VerifyMovesApart(const Place& place, const proto::Instruction& instruction) {
  struct End {
    uint32_t buffer;
    Interval bytes;
    bool written;
    int pair;
  };
  std::vector<End> ends;
  const auto add = [&](const proto::Operand& operand, bool written, int pair) {
    const Region region = RegionOf(place.plan, operand);
    const Interval bytes = region.own ? Interval{0, Interval::kEverything} : region.bytes;
    ends.push_back({operand.buffer_plus_one() - 1, bytes, written, pair});
  };
  for (int i = 0; i < instruction.in_size(); ++i) add(instruction.in(i), instruction.out_size() == 0, i);
  for (int i = 0; i < instruction.out_size(); ++i) add(instruction.out(i), true, i);
  std::sort(ends.begin(), ends.end(), [](const End& a, const End& b) {
    return std::tie(a.buffer, a.bytes.begin, a.pair) < std::tie(b.buffer, b.bytes.begin, b.pair);
  });
  size_t widest = 0;  // reaches furthest of those so far in the same buffer; a written one of equals
  for (size_t i = 1; i < ends.size(); ++i) {
    const End &before = ends[widest], &end = ends[i];
    if (before.buffer == end.buffer && end.bytes.begin < before.bytes.end &&
        (before.written || end.written) && before.pair != end.pair) {
      return place.Invalid("its pairs ", before.pair, " and ", end.pair, " meet in buffer ",
                           BufferName(place.plan, end.buffer));
    }
    if (before.buffer != end.buffer ||
        std::pair(end.bytes.end, end.written) > std::pair(before.bytes.end, before.written))
      widest = i;
  }
  return absl::OkStatus();
}

// A slice of a unit and its whole: a buffer each, or one buffer and its own slice.
absl::Status VerifySliceAndWhole(const Place& place, const proto::Operand& slice,
                                 const proto::Operand& whole) {
  const proto::SizeExpr &a = BufferOf(place, slice).size(), &b = BufferOf(place, whole).size();
  const bool own = slice.own_slice() && slice.buffer_plus_one() == whole.buffer_plus_one();
  const bool apart = slice.whole() && a.kind() == proto::SizeExpr::UNIT_SLICE;
  if (!(own || apart) || !whole.whole() || b.kind() != proto::SizeExpr::UNIT_FULL) {
    return place.Invalid("it must join the whole slice and the whole flat buffer of a unit, not ",
                         NameOf(place, slice), " and ", NameOf(place, whole));
  }
  if (a.unit() != b.unit() || a.value() != b.value() || slice.dtype() != whole.dtype()) {
    return place.Invalid("slice ", NameOf(place, slice), " and flat buffer ", NameOf(place, whole),
                         " are of different units or types");
  }
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

// A plan with one axis uses that one, or all ranks; one with two may use each.
absl::Status VerifyAxis(const Place& place, const proto::Instruction& instruction) {
  const proto::Axis axis = instruction.axis();
  if (axis == proto::AXIS_NONE) return place.Invalid("a collective needs an axis");
  if (instruction.opcode() != proto::ALL_REDUCE && axis != proto::AXIS_SHARD)
    return place.Invalid("slices lie along the shard axis only, not along ", AxisName(axis));
  const proto::Axis other = Shards(place.plan) ? proto::AXIS_REPLICA : proto::AXIS_SHARD;
  if (!place.plan.two_axes() && axis == other)
    return place.Invalid("strategy ", place.plan.strategy(), " has no ranks on the ", AxisName(axis),
                         " axis");
  return absl::OkStatus();
}

absl::Status VerifyStream(const Place& place, const proto::Instruction& instruction) {
  const proto::Stream stream = instruction.stream();
  if (stream == proto::GATHER || stream == proto::REDUCE) return absl::OkStatus();
  const std::string name = absl::AsciiStrToLower(proto::Stream_Name(stream));
  if (stream != proto::REPLICA) return place.Invalid("a collective cannot run on the ", name, " stream");
  if (instruction.opcode() != proto::ALL_REDUCE || instruction.axis() != proto::AXIS_REPLICA)
    return place.Invalid("only sums over the replica axis run on the ", name, " stream");
  return absl::OkStatus();
}

absl::Status VerifyCollective(const Place& place, const proto::Instruction& instruction) {
  const proto::Opcode opcode = instruction.opcode();
  FT_RETURN_IF_ERROR(VerifyStream(place, instruction));
  FT_RETURN_IF_ERROR(VerifyAxis(place, instruction));
  for (int i = 0; i < instruction.in_size(); ++i) {
    for (const auto* operands : {&instruction.in(), &instruction.out()}) {
      if (i < operands->size() && BufferOf(place, (*operands)[i]).space() != proto::DEVICE)
        return place.Invalid("a collective cannot touch host memory (buffer ", NameOf(place, (*operands)[i]),
                             ")");
    }
    const proto::Operand& in = instruction.in(i);
    if (opcode == proto::ALL_GATHER) FT_RETURN_IF_ERROR(VerifySliceAndWhole(place, in, instruction.out(i)));
    if (opcode == proto::REDUCE_SCATTER)
      FT_RETURN_IF_ERROR(VerifySliceAndWhole(place, instruction.out(i), in));
    const bool sums = opcode == proto::REDUCE_SCATTER || opcode == proto::ALL_REDUCE;
    if (sums && (in.dtype() == proto::I32 || in.dtype() == proto::U8))
      return place.Invalid("ranks cannot sum ", proto::DType_Name(in.dtype()), " (buffer ", NameOf(place, in),
                           ")");
  }
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

absl::Status VerifyCopy(const Place& place, const proto::Instruction& instruction) {
  if (instruction.stream() != proto::H2D && instruction.stream() != proto::D2H)
    return place.Invalid("a copy runs on h2d or d2h");
  if (instruction.axis() != proto::AXIS_NONE) return place.Invalid("a copy has no axis");
  const bool up = instruction.stream() == proto::H2D;
  for (int i = 0; i < instruction.in_size(); ++i) {
    const proto::Operand &in = instruction.in(i), &out = instruction.out(i);
    if (BufferOf(place, in).space() != (up ? proto::HOST : proto::DEVICE) ||
        BufferOf(place, out).space() != (up ? proto::DEVICE : proto::HOST)) {
      return place.Invalid("it must copy from ", up ? "host to device" : "device to host",
                           " memory: ", NameOf(place, in), " and ", NameOf(place, out), " do not lie so");
    }
    if (in.dtype() != out.dtype() ||
        !SameOnEveryMesh(place.plan, ExtentOf(place.plan, in), ExtentOf(place.plan, out))) {
      return place.Invalid("it copies ", NameOf(place, in), " to ", NameOf(place, out),
                           ", which are of different size or type");
    }
  }
  return absl::OkStatus();
}

}  // namespace

bool IsCollective(proto::Opcode opcode) {
  return opcode == proto::ALL_GATHER || opcode == proto::REDUCE_SCATTER || opcode == proto::ALL_REDUCE ||
         opcode == proto::ALL_TO_ALL;
}

bool IsTransfer(proto::Opcode opcode) { return IsCollective(opcode) || opcode == proto::COPY; }

bool RunsBeside(const proto::Instruction& instruction) {
  return IsTransfer(instruction.opcode()) ||
         (instruction.opcode() == proto::KERNEL && instruction.stream() == proto::HOST_COMPUTE);
}

absl::Status VerifyTransfer(const Place& place, const proto::Instruction& instruction) {
  FT_RETURN_IF_ERROR(VerifyCounts(place, instruction));
  FT_RETURN_IF_ERROR(VerifyMovesApart(place, instruction));
  if (instruction.opcode() == proto::COPY) return VerifyCopy(place, instruction);
  FT_RETURN_IF_ERROR(VerifyCollective(place, instruction));
  return instruction.opcode() == proto::ALL_TO_ALL ? VerifyAllToAll(place, instruction) : absl::OkStatus();
}

}  // namespace ft
