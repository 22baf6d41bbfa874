#include "runtime/plan/mesh.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace ft {
namespace {

proto::Plan PlanOf(bool shards, bool two_axes) {
  proto::Plan plan;
  plan.set_strategy(two_axes ? "hybrid_shard" : shards ? "full_shard" : "no_shard");
  plan.set_shards_optimizer(shards);
  plan.set_two_axes(two_axes);
  return plan;
}

TEST(MeshTest, GroupsAreRowsAndColumnsOfTheGrid) {
  const Mesh mesh{.replica = 2, .shard = 3};
  using Ranks = std::vector<int>;
  EXPECT_EQ(AxisGroup(mesh, proto::AXIS_SHARD, 1), (Ranks{0, 1, 2}));
  EXPECT_EQ(AxisGroup(mesh, proto::AXIS_SHARD, 5), (Ranks{3, 4, 5}));
  EXPECT_EQ(AxisGroup(mesh, proto::AXIS_REPLICA, 1), (Ranks{1, 4}));
  EXPECT_EQ(AxisGroup(mesh, proto::AXIS_REPLICA, 5), (Ranks{2, 5}));
  EXPECT_EQ(AxisGroup(mesh, proto::AXIS_WORLD, 4), (Ranks{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(AxisGroup(mesh, proto::AXIS_NONE, 4), Ranks{4});
  for (int rank = 0; rank < 6; ++rank) {
    EXPECT_EQ(AxisGroup(mesh, proto::AXIS_SHARD, rank)[static_cast<size_t>(mesh.ShardRank(rank))], rank);
    EXPECT_EQ(AxisGroup(mesh, proto::AXIS_REPLICA, rank)[static_cast<size_t>(mesh.ReplicaRank(rank))], rank);
  }
}

TEST(MeshTest, ByDefaultTwoAxesShardInsideANode) {
  const proto::Plan hybrid = PlanOf(true, true);
  EXPECT_EQ(*MeshFor(hybrid, 8, 4), (Mesh{2, 4}));
  EXPECT_EQ(*MeshFor(hybrid, 4, 4), (Mesh{1, 4}));
  EXPECT_EQ(*MeshFor(hybrid, 4, 1), (Mesh{4, 1}));
  EXPECT_EQ(*MeshFor(hybrid, 64), (Mesh{8, 8}));
  EXPECT_EQ(*MeshFor(hybrid, 3), (Mesh{1, 3}));
  const absl::Status uneven = MeshFor(hybrid, 6, 4).status();
  EXPECT_EQ(std::string(uneven.message()),
            "strategy hybrid_shard shards over the ranks of a node, but 6 ranks make no whole number of "
            "nodes of 4: "
            "give --mesh=replica:R,shard:S with R x S = 6");
  // With one axis the node does not matter.
  EXPECT_EQ(*MeshFor(PlanOf(true, false), 6, 4), (Mesh{1, 6}));
  EXPECT_EQ(*MeshFor(PlanOf(false, false), 6, 4), (Mesh{6, 1}));
}

TEST(MeshTest, OneAxisPlansRefuseTheOtherAxis) {
  for (const bool shards : {false, true}) {
    const proto::Plan plan = PlanOf(shards, false);
    EXPECT_TRUE(CheckMesh(plan, *MeshFor(plan, 4)).ok());
    for (const Mesh& mesh : {Mesh{2, 2}, shards ? Mesh{4, 1} : Mesh{1, 4}}) {
      const absl::Status status = CheckMesh(plan, mesh);
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_NE(status.message().find(shards ? "on the replica axis" : "on the shard axis"),
                std::string::npos)
          << status;
    }
  }
  const proto::Plan hybrid = PlanOf(true, true);
  for (const Mesh& mesh : {Mesh{2, 2}, Mesh{4, 1}, Mesh{1, 4}}) EXPECT_TRUE(CheckMesh(hybrid, mesh).ok());
  EXPECT_FALSE(CheckMesh(hybrid, {0, 4}).ok());
}

TEST(MeshTest, IsWrittenAndReadAlike) {
  EXPECT_EQ(MeshText({2, 4}), "replica:2,shard:4");
  EXPECT_EQ(*ParseMesh("replica:2,shard:4"), (Mesh{2, 4}));
  EXPECT_EQ(*ParseMesh("shard:4,replica:2"), (Mesh{2, 4}));
  EXPECT_EQ(*ParseMesh("shard:3"), (Mesh{1, 3}));
  EXPECT_EQ(*ParseMesh("replica:3"), (Mesh{3, 1}));
  for (const char* text :
       {"", "2x2", "replica", "replica:", "replica:0", "shard:-1", "shard:2,shard:2", "shard:2,",
        "replica:2:3", "shard:1.5", "node:2", "replica:99999999999", "replica:1048576,shard:2"}) {
    const absl::Status status = ParseMesh(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_EQ(status.message().find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace ft
