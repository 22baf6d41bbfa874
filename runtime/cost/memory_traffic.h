// What the kernels and transfers of a program move through the memory of a device, and the least that would
// do.
#pragma once

#include <cstdint>

#include "runtime/plan/mesh.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// Bytes of one rank in one run of a program. Ops are products, attention, losses, look-ups, updates and
// transfers: each reads and writes its operands once. All other kernels, clusters above all, stand between
// them.
struct MemoryTraffic {
  uint64_t ops = 0;
  uint64_t between = 0;
  // What ops move, and once more what only kernels between them write for an op or for later programs, and
  // what only they read of what an op has written (or what was there before the program). Nothing else has to
  // be in memory.
  uint64_t floor = 0;

  uint64_t moved() const { return ops + between; }
};

MemoryTraffic MemoryTrafficOf(const proto::Plan& plan, const proto::Program& program, const Mesh& mesh);

}  // namespace ft
