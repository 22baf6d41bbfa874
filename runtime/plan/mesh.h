// The ranks of a run as a grid: replica x shard.
#pragma once

#include "absl/status/statusor.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// Sizes of the two axes; world size = replica * shard. Rank r stands at shard position r % shard.
struct Mesh {
  int replica = 1;
  int shard = 1;

  int world_size() const { return replica * shard; }
  int ShardRank(int rank) const { return rank % shard; }
  friend bool operator==(const Mesh&, const Mesh&) = default;
};

// Whether anything at rest is a slice over the shard axis.
bool Shards(const proto::Plan& plan);

// The mesh that `plan` runs on by default: all ranks on the shard axis when it shards anything, else all on
// the replica axis. Errors: InvalidArgument for world_size < 1.
absl::StatusOr<Mesh> MeshFor(const proto::Plan& plan, int world_size);

// Ranks along `axis`; 1 for AXIS_NONE.
int AxisSize(const Mesh& mesh, proto::Axis axis);

}  // namespace ft
