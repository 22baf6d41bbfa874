// Sizes that depend on the mesh.
#pragma once

#include <cstdint>

#include "runtime/plan/plan.pb.h"

namespace ft {

// Elements of one rank's slice of a unit: ceil(elements / (block * shards)) * block. A whole unit is shards
// slices long.
uint64_t SliceElements(uint64_t elements, uint64_t block, uint64_t shards);

// Bytes of `size` with `shards` ranks on the shard axis. Checked by VerifyPlan: the unit exists, nothing
// overflows.
uint64_t SizeInBytes(const proto::Plan& plan, const proto::SizeExpr& size, uint64_t shards);

// The fewest bytes that `size` can have over all meshes on which the plan may run.
uint64_t SmallestSizeInBytes(const proto::Plan& plan, const proto::SizeExpr& size);

}  // namespace ft
