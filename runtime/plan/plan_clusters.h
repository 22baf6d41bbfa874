// Bodies of clusters in a plan.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/cluster.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// The names of the kernels of instructions that run a cluster and nothing else.
inline constexpr char kClusterKernel[] = "cluster";
inline constexpr char kUpdateKernel[] = "update";  // over the blocks of a slice

// Whether instructions of this kernel run a cluster: these, or after a product.
bool RunsCluster(std::string_view kernel);

// Equal bodies give equal messages.
proto::Cluster ToProto(const ClusterBody& body);

// Checked (CheckClusterBody). InvalidArgument says which op, input or output is none.
absl::StatusOr<ClusterBody> ClusterBodyOf(const proto::Cluster& cluster);

// All of a plan's, with their code; the error names the first that is none.
absl::StatusOr<std::vector<std::shared_ptr<Cluster>>> ClustersOf(const proto::Plan& plan);

}  // namespace ft
