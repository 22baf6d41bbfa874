// What a rank takes of the memory of its GPU beside the arena, as a target announces it ahead of time.
#pragma once

#include <cstdint>

#include "runtime/base/device_class.h"
#include "runtime/plan/mesh.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/target.h"

namespace ft {

// In bytes.
struct BesideArena {
  uint64_t context = 0;        // CUDA's context, code, what cuBLASLt and cuDNN keep
  uint64_t communicators = 0;  // buffers of NCCL
  // Of our collectives, at most: with --deterministic=on.
  uint64_t staging = 0;
  uint64_t total() const { return context + communicators + staging; }
};

// Whether the target says what lies there; those of CPUs have nothing to say.
bool AnnouncesBesideArena(const Target& target);

// Of a rank that runs the plan on devices of that class. All 0 where the target announces nothing, and for
// devices of another class than the target's. `plan` has passed VerifyPlan and fits the mesh.
BesideArena BesideArenaOf(const Target& target, const proto::Plan& plan, const Mesh& mesh,
                          DeviceClass device_class);

}  // namespace ft
