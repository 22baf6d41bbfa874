// The ranks of a run as a grid: replica x shard.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// Sizes of the two axes; world size = replica * shard. Ranks of one shard group follow each other: rank r
// stands at replica position r / shard and shard position r % shard.
struct Mesh {
  int replica = 1;
  int shard = 1;

  int world_size() const { return replica * shard; }
  int ShardRank(int rank) const { return rank % shard; }
  int ReplicaRank(int rank) const { return rank / shard; }
  friend bool operator==(const Mesh&, const Mesh&) = default;
};

// "replica:2,shard:4", as people write it; an axis left out has one rank.
std::string MeshText(const Mesh& mesh);

// The reverse. Errors: InvalidArgument, in one line, for anything else, an axis given twice, or more than
// 2^20 ranks.
absl::StatusOr<Mesh> ParseMesh(std::string_view text);

// Whether anything at rest is a slice over the shard axis.
bool Shards(const proto::Plan& plan);

// The mesh that `plan` runs on by default. One axis: all ranks on the shard axis when it shards anything,
// else all on the replica axis. Two axes: it shards over the ranks of a node, `local_world_size`, and
// replicates over nodes; where that is not known (0), over 8, or all ranks if they are fewer. Errors:
// InvalidArgument for world_size < 1, or ranks that make no whole number of nodes.
absl::StatusOr<Mesh> MeshFor(const proto::Plan& plan, int world_size, int local_world_size = 0);

// The same ahead of the plan.
struct MeshAxes {
  bool shards = false;    // at least something
  bool two_axes = false;  // and replicates
  std::string_view strategy;
};
absl::StatusOr<Mesh> MeshFor(const MeshAxes& axes, int world_size, int local_world_size = 0);

// The mesh that `plan` was compiled for; one of `world_size` ranks instead, unless that is 0 or has as many.
// Ranks that the plan does not tell are one. Errors: as MeshFor.
absl::StatusOr<Mesh> CompiledMesh(const proto::Plan& plan, int ranks_per_node, int world_size = 0);

// OK when `plan` can run on `mesh`. Errors: InvalidArgument for an axis without ranks, or with ranks over
// which the plan neither shards nor reduces.
absl::Status CheckMesh(const proto::Plan& plan, const Mesh& mesh);

// Ranks along `axis`; 1 for AXIS_NONE.
int AxisSize(const Mesh& mesh, proto::Axis axis);

// The ranks along `axis` through `rank`, ascending; `rank` alone for AXIS_NONE.
std::vector<int> AxisGroup(const Mesh& mesh, proto::Axis axis, int rank);

}  // namespace ft
