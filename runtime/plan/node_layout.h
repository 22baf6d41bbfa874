// How the ranks of a group lie on the nodes of a machine: which links their collectives pay.
#pragma once

#include <string>

#include "absl/types/span.h"
#include "runtime/plan/mesh.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// A step ends when the last rank is done, so where the groups of an axis lie differently (a shard group of 12
// ranks on nodes of 8), this is the worst of each: most nodes, most and fewest ranks of a group on one of its
// nodes.
struct NodeLayout {
  int ranks = 1;  // of a group
  int nodes = 1;
  int most_on_node = 1;
  int least_on_node = 1;

  friend bool operator==(const NodeLayout&, const NodeLayout&) = default;
};

// Of the groups along `axis`. Rank r runs on node r / ranks_per_node, as launchers number ranks.
NodeLayout LayoutOnNodes(const Mesh& mesh, proto::Axis axis, int ranks_per_node);

// The same for ranks that run where they run: `nodes` has a name for the node of each rank of the mesh.
NodeLayout LayoutOnNodes(const Mesh& mesh, proto::Axis axis, absl::Span<const std::string> nodes);

}  // namespace ft
