// That ranks cannot block each other, whatever the mesh, and that a sum over two axes is made of both its
// halves.
//
// A communicator belongs to one stream and the ranks of one axis (of several, where they are the same ranks),
// so it sees its collectives in the order in which they stand in the list, and as all ranks run one list, the
// k-th collective on it is the same instruction on every rank of the group: ranks cannot disagree about
// order, kind or size. What is left is waiting.
//
// Let (i, r) be instruction i on rank r. (i, r) begins when the one before it on its stream and those in its
// `after` have ended, all on rank r. It ends by itself, or, for a collective, once (i, s) has begun for all
// ranks s of its group. Forget the ranks: (i, r) -> i maps every edge of that wait-for graph, of any world
// size, onto an edge of the graph of instructions with the edges "before it on its stream" and "in its
// after", or, for the meeting of ranks, onto begin(i) -> end(i) of one vertex. So a cycle among ranks would
// be a cycle here; this graph is built and sorted. Programs follow each other in the order that the settings
// of the run give, the same on all ranks, and a program ends when all its streams have.
#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/plan/size_expr.h"
#include "runtime/plan/verify_parts.h"
#include "runtime/plan/verify_place.h"
#include "runtime/plan/verify_plan.h"
#include "runtime/plan/verify_transfers.h"

namespace ft {
namespace {

absl::Status VerifyNoCycle(const proto::Plan& plan, int program) {
  const auto& instructions = plan.programs(program).instructions();
  const int n = instructions.size();
  std::vector<std::vector<int>> followers(n);
  std::vector<int> waits_for(n, 0);
  std::array<int, proto::Stream_ARRAYSIZE> last;
  last.fill(-1);
  for (int i = 0; i < n; ++i) {
    const auto add = [&](int earlier) {
      followers[earlier].push_back(i);
      ++waits_for[i];
    };
    int& before = last[instructions[i].stream()];
    if (before >= 0) add(before);
    before = i;
    for (uint32_t earlier : instructions[i].after()) {
      if (earlier >= static_cast<uint32_t>(n))
        return Place{.plan = plan, .program = program, .instruction = i}.Invalid("it waits for instruction ",
                                                                                 earlier, " of ", n);
      add(static_cast<int>(earlier));
    }
  }
  std::vector<int> ready;
  for (int i = 0; i < n; ++i) {
    if (waits_for[i] == 0) ready.push_back(i);
  }
  for (size_t k = 0; k < ready.size(); ++k) {
    for (int follower : followers[ready[k]]) {
      if (--waits_for[follower] == 0) ready.push_back(follower);
    }
  }
  const auto stuck = std::find_if(waits_for.begin(), waits_for.end(), [](int waits) { return waits > 0; });
  if (stuck == waits_for.end()) return absl::OkStatus();
  return Place{.plan = plan, .program = program, .instruction = static_cast<int>(stuck - waits_for.begin())}
      .Invalid("it can never begin: it waits, over other instructions, for itself");
}

// With two axes a gradient is summed over shard, then over replica, and nothing looks at it in between.
absl::Status VerifySumsOverTwoAxes(const proto::Plan& plan, int program) {
  std::map<uint32_t, int> half;  // buffer + 1 -> the instruction that summed it over shard
  const auto& instructions = plan.programs(program).instructions();
  for (int i = 0; i < instructions.size(); ++i) {
    const proto::Instruction& instruction = instructions[i];
    const Place place{.plan = plan, .program = program, .instruction = i};
    const bool finishes =
        instruction.opcode() == proto::ALL_REDUCE && instruction.axis() == proto::AXIS_REPLICA;
    for (const auto* operands : {&instruction.in(), &instruction.out()}) {
      for (const proto::Operand& operand : *operands) {
        const auto found = half.find(operand.buffer_plus_one());
        if (operand.buffer_plus_one() == 0) continue;
        const bool flat = IsOfUnit(plan.buffers(operand.buffer_plus_one() - 1).size());
        const std::string name = BufferName(plan, operand.buffer_plus_one() - 1);
        if (found != half.end() && !finishes)
          return place.Invalid("it uses buffer ", name, ", which instruction ", found->second,
                               " has summed over shard, but nothing yet over replica");
        if (finishes && flat && found == half.end())
          return place.Invalid("it sums buffer ", name,
                               " over replica, but nothing has summed it over shard before");
        if (found != half.end()) half.erase(found);
      }
    }
    const bool begins =
        instruction.axis() == proto::AXIS_SHARD &&
        (instruction.opcode() == proto::REDUCE_SCATTER || instruction.opcode() == proto::ALL_REDUCE);
    if (!begins) continue;
    const auto& sums = instruction.opcode() == proto::REDUCE_SCATTER ? instruction.out() : instruction.in();
    for (const proto::Operand& sum : sums) {
      if (IsOfUnit(plan.buffers(sum.buffer_plus_one() - 1).size())) half[sum.buffer_plus_one()] = i;
    }
  }
  if (half.empty()) return absl::OkStatus();
  return Place{.plan = plan, .program = program, .instruction = half.begin()->second}.Invalid(
      "its sum over shard is never summed over replica");
}

}  // namespace

absl::Status VerifyCommunication(const proto::Plan& plan) {
  for (int p = 0; p < plan.programs_size(); ++p) {
    FT_RETURN_IF_ERROR(VerifyNoCycle(plan, p));
    if (plan.two_axes()) FT_RETURN_IF_ERROR(VerifySumsOverTwoAxes(plan, p));
  }
  return absl::OkStatus();
}

std::vector<CommunicatorUse> Communicators(const proto::Plan& plan) {
  std::map<std::pair<int, int>, uint64_t> counts;
  for (const proto::Program& program : plan.programs()) {
    for (const proto::Instruction& instruction : program.instructions()) {
      if (IsCollective(instruction.opcode())) ++counts[{instruction.stream(), instruction.axis()}];
    }
  }
  std::vector<CommunicatorUse> uses;
  for (const auto& [key, count] : counts)
    uses.push_back({static_cast<proto::Stream>(key.first), static_cast<proto::Axis>(key.second), count});
  return uses;
}

}  // namespace ft
