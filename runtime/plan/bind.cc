#include "runtime/plan/bind.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/memplan/memplan.h"
#include "runtime/plan/size_expr.h"

namespace ft {
namespace {

constexpr uint64_t kMaxBytes = std::numeric_limits<int64_t>::max();

absl::Status PlacePersistent(const proto::Plan& plan, proto::MemorySpace space, BoundPlan& bound,
                             BoundArena& arena) {
  uint64_t end = 0;
  for (int i = 0; i < plan.buffers_size(); ++i) {
    if (!plan.buffers(i).persistent() || plan.buffers(i).space() != space) continue;
    bound.offsets[i] = end;
    const uint64_t room = kMaxBytes - std::min(kMaxBytes, end + kDefaultAlignment);
    if (bound.sizes[i] > room) {
      return absl::OutOfRangeError(
          absl::StrCat("buffer '", plan.buffers(i).name(), "' leads past 2^63 bytes"));
    }
    end += RoundUp(bound.sizes[i]);
  }
  arena.persistent_bytes = arena.arena_bytes = arena.max_live_bytes = end;
  return absl::OkStatus();
}

absl::Status PlaceProgram(const proto::Plan& plan, proto::MemorySpace space, const std::vector<int>& buffers,
                          uint32_t program, uint64_t enough, BoundPlan& bound, BoundArena& arena) {
  std::vector<LiveRange> ranges;
  ranges.reserve(buffers.size());
  for (int i : buffers) ranges.push_back({bound.sizes[i], plan.buffers(i).first(), plan.buffers(i).last()});
  FT_ASSIGN_OR_RETURN(const MemoryPlan memory, PlanMemory(ranges, kDefaultAlignment,
                                                          enough - std::min(enough, arena.persistent_bytes)));
  for (size_t k = 0; k < buffers.size(); ++k)
    bound.offsets[buffers[k]] = arena.persistent_bytes + memory.offsets[k];
  arena.arena_bytes = std::max(arena.arena_bytes, arena.persistent_bytes + memory.arena_bytes);
  if (arena.persistent_bytes + memory.lower_bound > arena.max_live_bytes) {
    arena.max_live_bytes = arena.persistent_bytes + memory.lower_bound;
    arena.peak_program = program;
    arena.peak_instruction = memory.peak_index;
  }
  return absl::OkStatus();
}

absl::Status PlaceSpace(const proto::Plan& plan, proto::MemorySpace space, uint64_t enough, BoundPlan& bound,
                        BoundArena& arena) {
  FT_RETURN_IF_ERROR(PlacePersistent(plan, space, bound, arena));
  std::vector<std::vector<int>> by_program(plan.programs_size());
  for (int i = 0; i < plan.buffers_size(); ++i) {
    const proto::Buffer& buffer = plan.buffers(i);
    if (!buffer.persistent() && buffer.space() == space) by_program[buffer.program()].push_back(i);
  }
  for (size_t p = 0; p < by_program.size(); ++p) {
    if (by_program[p].empty()) continue;
    FT_RETURN_IF_ERROR(
        PlaceProgram(plan, space, by_program[p], static_cast<uint32_t>(p), enough, bound, arena));
  }
  if (arena.arena_bytes > kMaxBytes) return absl::OutOfRangeError("the arena exceeds 2^63 bytes");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<BoundPlan> BindPlan(const proto::Plan& plan, const Mesh& mesh, DeviceClass device_class,
                                   uint64_t enough) {
  FT_RETURN_IF_ERROR(CheckMesh(plan, mesh));
  BoundPlan bound;
  bound.mesh = mesh;
  bound.device_class = device_class;
  for (const proto::Unit& unit : plan.units()) {
    bound.slices.push_back(SliceElements(unit.elements(), plan.block_elements(), mesh.shard));
  }
  bound.sizes.reserve(plan.buffers_size());
  for (const proto::Buffer& buffer : plan.buffers())
    bound.sizes.push_back(BufferBytes(plan, buffer, mesh.shard, device_class));
  bound.offsets.assign(plan.buffers_size(), 0);
  FT_RETURN_IF_ERROR(PlaceSpace(plan, proto::DEVICE, enough, bound, bound.device));
  FT_RETURN_IF_ERROR(PlaceSpace(plan, proto::HOST, 0, bound, bound.host));
  return bound;
}

}  // namespace ft
