#include "runtime/plan/node_layout.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace ft {
namespace {

constexpr proto::Axis kAxes[] = {proto::AXIS_SHARD, proto::AXIS_REPLICA, proto::AXIS_WORLD};

TEST(NodeLayoutTest, AHybridMeshShardsInsideNodesAndReplicatesAcrossThem) {
  const Mesh mesh{.replica = 8, .shard = 8};
  EXPECT_EQ(LayoutOnNodes(mesh, proto::AXIS_SHARD, 8), (NodeLayout{8, 1, 8, 8}));
  EXPECT_EQ(LayoutOnNodes(mesh, proto::AXIS_REPLICA, 8), (NodeLayout{8, 8, 1, 1}));
  EXPECT_EQ(LayoutOnNodes(mesh, proto::AXIS_WORLD, 8), (NodeLayout{64, 8, 8, 8}));
  EXPECT_EQ(LayoutOnNodes(mesh, proto::AXIS_NONE, 8), (NodeLayout{1, 1, 1, 1}));
}

TEST(NodeLayoutTest, ShardGroupsThatAreNoPartsOfNodes) {
  // 12 ranks on nodes of 8: 8 + 4, or 4 + 8.
  EXPECT_EQ(LayoutOnNodes({.replica = 2, .shard = 12}, proto::AXIS_SHARD, 8), (NodeLayout{12, 2, 8, 4}));
  // 6 on nodes of 8: all on one, 2 + 4, 4 + 2.
  EXPECT_EQ(LayoutOnNodes({.replica = 4, .shard = 6}, proto::AXIS_SHARD, 8), (NodeLayout{6, 2, 6, 2}));
  // Two shard groups share a node, so replicas are neighbours too.
  EXPECT_EQ(LayoutOnNodes({.replica = 4, .shard = 4}, proto::AXIS_REPLICA, 8), (NodeLayout{4, 2, 2, 2}));
  // The last node is not full.
  EXPECT_EQ(LayoutOnNodes({.replica = 1, .shard = 20}, proto::AXIS_SHARD, 8), (NodeLayout{20, 3, 8, 4}));
}

// The same by going through all ranks.
NodeLayout Counted(const Mesh& mesh, proto::Axis axis, int ranks_per_node) {
  NodeLayout worst{.ranks = AxisSize(mesh, axis), .nodes = 0, .most_on_node = 0, .least_on_node = 1 << 30};
  for (int rank = 0; rank < mesh.world_size(); ++rank) {
    std::map<int, int> on_node;
    for (const int member : AxisGroup(mesh, axis, rank)) ++on_node[member / ranks_per_node];
    worst.nodes = std::max(worst.nodes, static_cast<int>(on_node.size()));
    for (const auto& [node, ranks] : on_node) {
      worst.most_on_node = std::max(worst.most_on_node, ranks);
      worst.least_on_node = std::min(worst.least_on_node, ranks);
    }
  }
  return worst;
}

TEST(NodeLayoutTest, AnyMeshOnAnyNodes) {
  for (const int ranks_per_node : {1, 2, 3, 4, 5, 8, 12}) {
    for (int replica = 1; replica <= 14; ++replica) {
      for (int shard = 1; shard <= 14; ++shard) {
        for (const proto::Axis axis : kAxes) {
          const Mesh mesh{.replica = replica, .shard = shard};
          std::vector<std::string> nodes;
          for (int rank = 0; rank < mesh.world_size(); ++rank)
            nodes.push_back("node-" + std::to_string(rank / ranks_per_node));
          EXPECT_EQ(LayoutOnNodes(mesh, axis, nodes), Counted(mesh, axis, ranks_per_node))
              << MeshText(mesh) << " axis " << axis << " on nodes of " << ranks_per_node;
          EXPECT_EQ(LayoutOnNodes(mesh, axis, ranks_per_node), Counted(mesh, axis, ranks_per_node))
              << MeshText(mesh) << " axis " << axis << " on nodes of " << ranks_per_node;
        }
      }
    }
  }
}

}  // namespace
}  // namespace ft
