#include "runtime/plan/verify_worlds.h"

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/plan/bind.h"
#include "runtime/plan/verify_bound.h"

namespace ft {
namespace {

absl::Status VerifyOn(const proto::Plan& plan, const Mesh& mesh, DeviceClass device) {
  FT_ASSIGN_OR_RETURN(const BoundPlan bound, BindPlan(plan, mesh, device));
  return VerifyBound(plan, bound);
}

// Without any, the addresses on all devices are the same.
bool DependsOnDevice(const proto::Plan& plan) {
  return std::any_of(plan.buffers().begin(), plan.buffers().end(),
                     [](const proto::Buffer& buffer) { return buffer.has_cuda_bytes(); });
}

// Devices differ in scratch alone, which does not depend on the mesh: every so many meshes show how it lies
// among buffers that do.
constexpr size_t kMeshesPerScratch = 4;

// The mesh with `ranks` on the axis that sizes depend on.
Mesh MeshWith(const proto::Plan& plan, int ranks, int largest_world) {
  if (plan.two_axes()) return {.replica = largest_world / ranks, .shard = ranks};
  return Shards(plan) ? Mesh{.replica = 1, .shard = ranks} : Mesh{.replica = ranks, .shard = 1};
}

}  // namespace

std::vector<Mesh> SampleMeshes(const proto::Plan& plan) {
  std::set<int> sizes = {1, 2, 3, 5, 7, 8, 13, 64, 65, 509, 512, 1000, 4095, kLargestWorld};
  // Sizes do not depend on replicas.
  if (!Shards(plan)) sizes = {1, kLargestWorld};
  std::vector<Mesh> meshes;
  for (int size : sizes) meshes.push_back(MeshWith(plan, size, kLargestWorld));
  return meshes;
}

void AddOwnMesh(const proto::Plan& plan, std::vector<Mesh>& meshes) {
  const auto own = CompiledMesh(plan, static_cast<int>(plan.target().ranks_per_node()));
  if (own.ok() && std::find(meshes.begin(), meshes.end(), *own) == meshes.end()) meshes.push_back(*own);
}

std::vector<Mesh> AllMeshes(const proto::Plan& plan, int largest_world) {
  std::vector<Mesh> meshes;
  for (int size = 1; size <= largest_world; ++size) meshes.push_back(MeshWith(plan, size, largest_world));
  return meshes;
}

absl::Status VerifyWorlds(const proto::Plan& plan, const std::vector<Mesh>& meshes) {
  const bool depends = DependsOnDevice(plan);
  for (size_t i = 0; i < meshes.size(); ++i) {
    for (const DeviceClass device : kDeviceClasses) {
      if (device != DeviceClass::kCpu && (!depends || i % kMeshesPerScratch != 0)) continue;
      const absl::Status status = VerifyOn(plan, meshes[i], device);
      if (!status.ok())
        return absl::Status(status.code(), absl::StrCat("on mesh ", MeshText(meshes[i]), ", device ",
                                                        std::string(Name(device)), ": ", status.message()));
    }
  }
  return absl::OkStatus();
}

}  // namespace ft
