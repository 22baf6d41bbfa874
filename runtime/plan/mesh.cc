#include "runtime/plan/mesh.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace ft {
namespace {

constexpr int kMostRanks = 1 << 20;
// Of a node whose size nobody told.
constexpr int kUsualNode = 8;

absl::StatusOr<Mesh> MeshOfNodes(std::string_view strategy, int world_size, int local_world_size) {
  const int node = local_world_size > 0 ? local_world_size : std::min(world_size, kUsualNode);
  if (world_size % node == 0) return Mesh{.replica = world_size / node, .shard = node};
  return absl::InvalidArgumentError(
      absl::StrCat("strategy ", std::string(strategy), " shards over the ranks of a node, but ", world_size,
                   " ranks make no whole number of nodes of ", node,
                   ": give --mesh=replica:R,shard:S with R x S = ", world_size));
}

}  // namespace

std::string MeshText(const Mesh& mesh) {
  return absl::StrCat("replica:", mesh.replica, ",shard:", mesh.shard);
}

absl::StatusOr<Mesh> ParseMesh(std::string_view text) {
  const absl::Status mistake = absl::InvalidArgumentError(
      absl::StrCat("a mesh is written replica:R,shard:S, not '", std::string(text), "'"));
  int replica = 0, shard = 0;
  const std::vector<std::string> parts = absl::StrSplit(std::string(text), ',');
  for (const std::string& part : parts) {
    const std::vector<std::string> pair = absl::StrSplit(part, ':');
    int* size = pair[0] == "replica" ? &replica : pair[0] == "shard" ? &shard : nullptr;
    if (pair.size() != 2 || size == nullptr || *size != 0) return mistake;
    if (!absl::SimpleAtoi(pair[1], size) || *size < 1) return mistake;
  }
  const Mesh mesh{.replica = std::max(replica, 1), .shard = std::max(shard, 1)};
  if (mesh.replica > kMostRanks / mesh.shard) {
    return absl::InvalidArgumentError(
        absl::StrCat("a mesh of ", MeshText(mesh), " has more than ", kMostRanks, " ranks"));
  }
  return mesh;
}

bool Shards(const proto::Plan& plan) {
  return plan.shards_parameters() || plan.shards_gradients() || plan.shards_optimizer();
}

absl::StatusOr<Mesh> MeshFor(const MeshAxes& axes, int world_size, int local_world_size) {
  if (world_size < 1)
    return absl::InvalidArgumentError(absl::StrCat("a world size of ", world_size, " is not possible"));
  if (axes.two_axes) return MeshOfNodes(axes.strategy, world_size, local_world_size);
  return axes.shards ? Mesh{.replica = 1, .shard = world_size} : Mesh{.replica = world_size, .shard = 1};
}

absl::StatusOr<Mesh> MeshFor(const proto::Plan& plan, int world_size, int local_world_size) {
  return MeshFor({.shards = Shards(plan), .two_axes = plan.two_axes(), .strategy = plan.strategy()},
                 world_size, local_world_size);
}

absl::StatusOr<Mesh> CompiledMesh(const proto::Plan& plan, int ranks_per_node, int world_size) {
  const proto::Plan::Ranks& ranks = plan.compiled_for();
  const Mesh mesh{.replica = static_cast<int>(ranks.replica()), .shard = static_cast<int>(ranks.shard())};
  if (CheckMesh(plan, mesh).ok() && (world_size == 0 || world_size == mesh.world_size())) return mesh;
  if (world_size == 0) world_size = std::max(1, static_cast<int>(ranks.world_size()));
  return MeshFor(plan, world_size, std::min(world_size, ranks_per_node));
}

absl::Status CheckMesh(const proto::Plan& plan, const Mesh& mesh) {
  if (mesh.replica < 1 || mesh.shard < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a mesh of ", mesh.replica, " x ", mesh.shard, " ranks is not possible"));
  }
  if (plan.two_axes()) return absl::OkStatus();
  const bool shards = Shards(plan);
  if ((shards ? mesh.replica : mesh.shard) == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "strategy ", plan.strategy(), shards ? " shards over all ranks" : " shards nothing",
      ", but the mesh has ", shards ? mesh.replica : mesh.shard, " ranks on the ",
      shards ? "replica" : "shard",
      " axis: leave --mesh out, or compile with a strategy that uses both axes, such as hybrid_shard"));
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

std::vector<int> AxisGroup(const Mesh& mesh, proto::Axis axis, int rank) {
  const int stride = axis == proto::AXIS_REPLICA ? mesh.shard : 1;
  int first = rank;
  if (axis == proto::AXIS_SHARD) first = rank - mesh.ShardRank(rank);
  if (axis == proto::AXIS_REPLICA) first = mesh.ShardRank(rank);
  if (axis == proto::AXIS_WORLD) first = 0;
  std::vector<int> ranks;
  for (int i = 0; i < AxisSize(mesh, axis); ++i) ranks.push_back(first + i * stride);
  return ranks;
}

}  // namespace ft
