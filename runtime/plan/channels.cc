#include "runtime/plan/channels.h"

#include <array>
#include <utility>

#include "runtime/plan/verify_transfers.h"

namespace ft {
namespace {

using Uses = std::array<std::array<bool, proto::Axis_ARRAYSIZE>, proto::Stream_ARRAYSIZE>;

Uses UsesOf(const proto::Plan& plan) {
  Uses uses = {};
  uses[proto::REDUCE][proto::AXIS_WORLD] = true;
  for (const proto::Program& program : plan.programs()) {
    for (const proto::Instruction& instruction : program.instructions()) {
      if (IsCollective(instruction.opcode())) uses[instruction.stream()][instruction.axis()] = true;
    }
  }
  return uses;
}

}  // namespace

std::vector<Channel> ChannelsOf(const proto::Plan& plan, const Mesh& mesh, int rank) {
  const Uses uses = UsesOf(plan);
  std::vector<Channel> channels;
  for (int s = 0; s < proto::Stream_ARRAYSIZE; ++s) {
    for (int a = 0; a < proto::Axis_ARRAYSIZE; ++a) {
      if (!uses[s][a]) continue;
      const auto stream = static_cast<proto::Stream>(s);
      const auto axis = static_cast<proto::Axis>(a);
      std::vector<int> ranks = AxisGroup(mesh, axis, rank);
      Channel* same = nullptr;
      for (Channel& channel : channels) {
        if (channel.stream == stream && channel.ranks == ranks) same = &channel;
      }
      if (same == nullptr) same = &channels.emplace_back(Channel{stream, {}, std::move(ranks)});
      same->axes.push_back(axis);
    }
  }
  return channels;
}

}  // namespace ft
