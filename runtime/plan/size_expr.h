// Sizes that depend on the mesh.
#pragma once

#include <cstdint>

#include "runtime/base/device_class.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// Elements of one rank's slice of a unit: ceil(elements / (block * shards)) * block. A whole unit is shards
// slices long.
uint64_t SliceElements(uint64_t elements, uint64_t block, uint64_t shards);

// Bytes of `size` with `shards` ranks on the shard axis. Checked by VerifyPlan: the unit exists, nothing
// overflows.
uint64_t SizeInBytes(const proto::Plan& plan, const proto::SizeExpr& size, uint64_t shards);

// Whether it is said of a unit, whole or sliced.
inline bool IsOfUnit(const proto::SizeExpr& size) {
  return size.kind() == proto::SizeExpr::UNIT_FULL || size.kind() == proto::SizeExpr::UNIT_SLICE;
}

// Whether the `rank`-th of `shards` ranks on the shard axis has the thing that a buffer of kind SHARE is for.
// Its buffer is there on all ranks where the first has it.
bool HasShare(const proto::SizeExpr& size, uint64_t shards, uint64_t rank);

// Bytes of `buffer` on a device with `shards` ranks on the shard axis.
uint64_t BufferBytes(const proto::Plan& plan, const proto::Buffer& buffer, uint64_t shards,
                     DeviceClass device);

// The fewest bytes that `buffer` can have over all meshes and devices on which something touches it.
uint64_t SmallestBufferBytes(const proto::Plan& plan, const proto::Buffer& buffer);

}  // namespace ft
