#include "runtime/plan/link_use.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "runtime/plan/mesh.h"
#include "runtime/plan/rank_share.h"
#include "runtime/plan/report.h"
#include "runtime/plan/verify_transfers.h"

namespace ft {
namespace {

// World by the name of the axis that is the same ranks.
proto::Axis Canonical(const Mesh& mesh, proto::Axis axis) {
  if (axis != proto::AXIS_WORLD) return axis;
  if (mesh.replica == 1) return proto::AXIS_SHARD;
  return mesh.shard == 1 ? proto::AXIS_REPLICA : proto::AXIS_WORLD;
}

struct Collected {
  LinkUse use;
  std::map<uint64_t, int64_t> calls_by_bytes;

  void Add(uint64_t bytes, int64_t calls, proto::DType dtype) {
    if (bytes >= use.largest_bytes) use.dtype = dtype;
    use.largest_bytes = std::max(use.largest_bytes, bytes);
    use.calls += calls;
    use.bytes += bytes * static_cast<uint64_t>(calls);
    calls_by_bytes[bytes] += calls;
  }

  LinkUse Take() {
    uint64_t so_far = 0;
    for (const auto& [bytes, calls] : calls_by_bytes) {
      use.typical_bytes = bytes;
      so_far += bytes * static_cast<uint64_t>(calls);
      if (so_far >= (use.bytes + 1) / 2) break;
    }
    return use;
  }
};

}  // namespace

std::vector<LinkUse> LinkUses(const proto::Plan& plan, const BoundPlan& bound) {
  std::map<std::pair<proto::Axis, proto::Opcode>, Collected> collected;
  for (const proto::Program& program : plan.programs()) {
    const auto runs = static_cast<int64_t>(RunsInStep(plan, program));
    if (runs == 0) continue;
    for (const proto::Instruction& instruction : program.instructions()) {
      // An all_to_all is between ranks that gather, too.
      if (!IsCollective(instruction.opcode()) || instruction.opcode() == proto::ALL_TO_ALL ||
          AxisSize(bound.mesh, instruction.axis()) < 2)
        continue;
      const proto::Axis axis = Canonical(bound.mesh, instruction.axis());
      const auto [found, is_new] =
          collected.try_emplace({axis, instruction.opcode()}, Collected{.use = {}, .calls_by_bytes = {}});
      LinkUse& use = found->second.use;
      if (is_new) {
        use.opcode = instruction.opcode();
        use.axis = axis;
        use.ranks = AxisSize(bound.mesh, axis);
        use.stream = instruction.stream();
        use.axis_of_instruction = instruction.axis();
      }
      found->second.Add(TransferBytes(plan, bound.mesh, instruction), runs, instruction.in(0).dtype());
    }
  }
  std::vector<LinkUse> uses;
  uses.reserve(collected.size());
  for (auto& [key, all] : collected) uses.push_back(all.Take());
  return uses;
}

std::string NameOf(const LinkUse& use) {
  const std::string axis = absl::AsciiStrToLower(proto::Axis_Name(use.axis));
  return absl::StrCat(absl::AsciiStrToLower(proto::Opcode_Name(use.opcode)), " over ",
                      std::string(absl::StripPrefix(axis, "axis_")));
}

}  // namespace ft
