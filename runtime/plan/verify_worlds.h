// Whether a plan runs at every world size.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "runtime/plan/mesh.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

inline constexpr int kLargestWorld = 4096;

// Meshes of 1 to kLargestWorld ranks that `plan` can run on: small ones, powers of two, odd ones and the
// largest. About a dozen, for `ftc verify`. Sizes depend on the ranks
// of the shard axis only, so with two axes each number of those comes with as many replicas as fit.
std::vector<Mesh> SampleMeshes(const proto::Plan& plan);

// Adds the mesh that `plan` was compiled for, which may be larger, unless it is among them.
void AddOwnMesh(const proto::Plan& plan, std::vector<Mesh>& meshes);

// The same as SampleMeshes for every number of ranks on the shard axis (on the replica axis, when the plan
// shards nothing) up to `largest_world`.
std::vector<Mesh> AllMeshes(const proto::Plan& plan, int largest_world = kLargestWorld);

// Binds `plan`, which has passed VerifyPlan, to each mesh on the CPU, to every fourth also on other classes
// of device (which differ in scratch alone), and has VerifyBound look at the addresses. Errors: those of
// both, with mesh and device in front.
absl::Status VerifyWorlds(const proto::Plan& plan, const std::vector<Mesh>& meshes);

}  // namespace ft
