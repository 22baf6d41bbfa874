// Fixes what a plan leaves open, the sizes that depend on the mesh and on the device, and with them every
// address.
//
// The arena of a rank: persistent buffers first, one after the other in the order of the plan, then one
// region that the programs share, laid out for each program by runtime/memplan. `ftc explain` and ftexec both
// come here, so what is explained is what is allocated.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/device_class.h"
#include "runtime/plan/mesh.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// One memory space of one rank.
struct BoundArena {
  uint64_t arena_bytes = 0;       // to allocate; a multiple of 256
  uint64_t persistent_bytes = 0;  // the part that lives through all programs
  // The most bytes live at once, persistent ones included: no arrangement needs less. Reached at this
  // instruction of this program (0, 0 when there are only persistent buffers).
  uint64_t max_live_bytes = 0;
  uint32_t peak_program = 0;
  uint32_t peak_instruction = 0;
};

struct BoundPlan {
  Mesh mesh;
  DeviceClass device_class = DeviceClass::kCpu;
  BoundArena device;
  BoundArena host;
  std::vector<uint64_t> sizes;    // bytes, by buffer
  std::vector<uint64_t> offsets;  // bytes into the arena of the buffer's space, by buffer; multiples of 256
  std::vector<uint64_t> slices;   // elements of one slice, by unit

  uint64_t arena_bytes() const { return device.arena_bytes; }
  uint64_t host_arena_bytes() const { return host.arena_bytes; }
};

// `plan` must have passed VerifyPlan. The result is the same for all ranks of the mesh; they run on devices
// of one class. Errors: those of CheckMesh, OutOfRange when sizes overflow 63 bits.
// Looks for the smallest arena of the device, or for one of at most `enough` bytes, which is quicker.
absl::StatusOr<BoundPlan> BindPlan(const proto::Plan& plan, const Mesh& mesh, DeviceClass device_class,
                                   uint64_t enough = 0);

}  // namespace ft
