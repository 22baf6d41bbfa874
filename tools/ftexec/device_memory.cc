#include "tools/ftexec/device_memory.h"

#include <algorithm>

#include "fmt/format.h"
#include "runtime/base/numbers.h"
#include "runtime/plan/beside_arena.h"

namespace ft {

uint64_t DeviceMemoryUse::beside() const { return used - std::min(used, used_before + arena); }

std::string MemoryLine(const DeviceMemoryUse& memory) {
  if (memory.used == 0) return "";
  return fmt::format(
      "device memory in use: {} bytes, {} of them the arena, {} context, libraries and communicators, {} "
      "other "
      "processes\n",
      memory.used, memory.arena, memory.beside(),
      memory.used - std::min(memory.used, memory.arena + memory.beside()));
}

std::string LowAnnouncement(const proto::Plan& plan, const BoundPlan& bound, const DeviceMemoryUse& memory) {
  const Target& target = plan.target();
  const uint64_t announced = BesideArenaOf(target, plan, bound.mesh, bound.device_class).total();
  if (announced == 0 || memory.beside() <= announced) return "";
  return fmt::format(
      "{} lie beside the arena (context, libraries, communicators), {} were announced by {}: budgets and ftc "
      "explain reckon with too little; a target of your own with larger memory.beside_mib or "
      "memory.communicator_mib puts it right",
      ShortBytes(memory.beside()), ShortBytes(announced), target.name());
}

}  // namespace ft
