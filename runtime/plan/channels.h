// Which ranks a plan's collectives go between: a communicator is made for each of these channels.
#pragma once

#include <vector>

#include "runtime/plan/mesh.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// A group and the transfers that it serves: those of one stream over one of some axes.
struct Channel {
  proto::Stream stream;
  std::vector<proto::Axis> axes;
  std::vector<int> ranks;
};

// Those of `rank`, by stream and then by axis, as the plan's format numbers them. Axes that are the same
// ranks on this mesh share a channel. There is always one of stream `reduce` over the world.
std::vector<Channel> ChannelsOf(const proto::Plan& plan, const Mesh& mesh, int rank);

}  // namespace ft
