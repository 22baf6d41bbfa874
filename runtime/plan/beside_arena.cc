#include "runtime/plan/beside_arena.h"

#include "runtime/base/communicator_staging.h"
#include "runtime/plan/channels.h"

namespace ft {

bool AnnouncesBesideArena(const Target& target) {
  return target.cuda() && target.beside_bytes() + target.communicator_bytes() > 0;
}

BesideArena BesideArenaOf(const Target& target, const proto::Plan& plan, const Mesh& mesh,
                          DeviceClass device_class) {
  if (!AnnouncesBesideArena(target) || device_class != DeviceClass::kCuda) return {};
  uint64_t communicators = 0;  // a group of one rank has no buffers
  for (const Channel& channel : ChannelsOf(plan, mesh, 0)) communicators += channel.ranks.size() > 1;
  return {.context = target.beside_bytes(),
          .communicators = communicators * target.communicator_bytes(),
          .staging = communicators * kDeterministicStaging};
}

}  // namespace ft
