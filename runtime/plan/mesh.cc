#include "runtime/plan/mesh.h"

#include "absl/strings/str_cat.h"

namespace ft {

bool Shards(const proto::Plan& plan) {
  return plan.shards_parameters() || plan.shards_gradients() || plan.shards_optimizer();
}

absl::StatusOr<Mesh> MeshFor(const proto::Plan& plan, int world_size) {
  if (world_size < 1)
    return absl::InvalidArgumentError(absl::StrCat("a world size of ", world_size, " is not possible"));
  return Shards(plan) ? Mesh{.replica = 1, .shard = world_size} : Mesh{.replica = world_size, .shard = 1};
}

int AxisSize(const Mesh& mesh, proto::Axis axis) {
  switch (axis) {
    case proto::AXIS_SHARD:
      return mesh.shard;
    case proto::AXIS_REPLICA:
      return mesh.replica;
    case proto::AXIS_WORLD:
      return mesh.world_size();
    default:
      return 1;
  }
}

}  // namespace ft
