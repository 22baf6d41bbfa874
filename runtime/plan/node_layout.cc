#include "runtime/plan/node_layout.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

namespace ft {
namespace {

// Ranks first, first + stride, ...
struct Group {
  int64_t first;
  int64_t stride;
  int64_t ranks;
};

// Those of `group` below rank `end`.
int64_t RanksBelow(const Group& group, int64_t end) {
  if (end <= group.first) return 0;
  return std::min(group.ranks, (end - group.first + group.stride - 1) / group.stride);
}

NodeLayout LayoutOf(const Group& group, int64_t per_node) {
  NodeLayout layout{.ranks = static_cast<int>(group.ranks)};
  if (group.stride >= per_node) {  // no node has two of them
    layout.nodes = layout.ranks;
    return layout;
  }
  const int64_t first = group.first / per_node;
  const int64_t last = (group.first + (group.ranks - 1) * group.stride) / per_node;
  layout.nodes = static_cast<int>(last - first + 1);
  layout.most_on_node = 0;
  layout.least_on_node = layout.ranks;
  const auto look_at = [&](int64_t node) {
    const auto here =
        static_cast<int>(RanksBelow(group, (node + 1) * per_node) - RanksBelow(group, node * per_node));
    layout.most_on_node = std::max(layout.most_on_node, here);
    layout.least_on_node = std::min(layout.least_on_node, here);
  };
  // Between the first and the last node the numbers repeat after `stride` nodes.
  for (int64_t node = first; node <= std::min(last, first + group.stride); ++node) look_at(node);
  look_at(last);
  return layout;
}

void AddWorst(const NodeLayout& layout, NodeLayout& worst) {
  worst.nodes = std::max(worst.nodes, layout.nodes);
  worst.most_on_node = std::max(worst.most_on_node, layout.most_on_node);
  worst.least_on_node = std::min(worst.least_on_node, layout.least_on_node);
}

}  // namespace

NodeLayout LayoutOnNodes(const Mesh& mesh, proto::Axis axis, int ranks_per_node) {
  const int64_t replica = mesh.replica, shard = mesh.shard;
  if (axis != proto::AXIS_SHARD && axis != proto::AXIS_REPLICA)
    return LayoutOf({.first = 0, .stride = 1, .ranks = axis == proto::AXIS_WORLD ? replica * shard : 1},
                    ranks_per_node);
  const bool is_shard = axis == proto::AXIS_SHARD;
  // Shard groups lie end to end: where they begin on a node repeats after `ranks_per_node` groups. Groups of
  // replicas begin at each rank of the first shard group.
  const int64_t groups = std::min<int64_t>(is_shard ? replica : shard, ranks_per_node);
  NodeLayout worst;
  for (int64_t i = 0; i < groups; ++i) {
    const Group group = is_shard ? Group{.first = i * shard, .stride = 1, .ranks = shard}
                                 : Group{.first = i, .stride = shard, .ranks = replica};
    const NodeLayout layout = LayoutOf(group, ranks_per_node);
    if (i == 0)
      worst = layout;
    else
      AddWorst(layout, worst);
  }
  return worst;
}

NodeLayout LayoutOnNodes(const Mesh& mesh, proto::Axis axis, absl::Span<const std::string> nodes) {
  NodeLayout worst{.ranks = AxisSize(mesh, axis)};
  bool first = true;
  for (int rank = 0; rank < mesh.world_size(); ++rank) {
    const std::vector<int> group = AxisGroup(mesh, axis, rank);
    if (group.front() != rank) continue;  // each group once
    std::map<std::string_view, int> on_node;
    for (const int member : group) ++on_node[nodes[static_cast<size_t>(member)]];
    NodeLayout layout{.ranks = worst.ranks, .nodes = static_cast<int>(on_node.size())};
    layout.most_on_node = 0;
    layout.least_on_node = layout.ranks;
    for (const auto& [node, ranks] : on_node) {
      layout.most_on_node = std::max(layout.most_on_node, ranks);
      layout.least_on_node = std::min(layout.least_on_node, ranks);
    }
    if (first)
      worst = layout;
    else
      AddWorst(layout, worst);
    first = false;
  }
  return worst;
}

}  // namespace ft
