#include "runtime/plan/size_expr.h"

#include <algorithm>

#include "runtime/plan/mesh.h"

namespace ft {

uint64_t SliceElements(uint64_t elements, uint64_t block, uint64_t shards) {
  const uint64_t stride = block * shards;
  return (elements + stride - 1) / stride * block;
}

uint64_t SizeInBytes(const proto::Plan& plan, const proto::SizeExpr& size, uint64_t shards) {
  if (size.kind() == proto::SizeExpr::CONSTANT) return size.value();
  if (size.kind() == proto::SizeExpr::SHARE) return HasShare(size, shards, 0) ? size.value() : 0;
  const uint64_t slice = SliceElements(plan.units(size.unit()).elements(), plan.block_elements(), shards);
  return (size.kind() == proto::SizeExpr::UNIT_FULL ? slice * shards : slice) * size.value();
}

bool HasShare(const proto::SizeExpr& size, uint64_t shards, uint64_t rank) {
  return size.index() * shards + rank < size.count();
}

uint64_t BufferBytes(const proto::Plan& plan, const proto::Buffer& buffer, uint64_t shards,
                     DeviceClass device) {
  if (device == DeviceClass::kCuda && buffer.has_cuda_bytes()) return buffer.cuda_bytes();
  return SizeInBytes(plan, buffer.size(), shards);
}

uint64_t SmallestBufferBytes(const proto::Plan& plan, const proto::Buffer& buffer) {
  const proto::SizeExpr& size = buffer.size();
  // Where it has none, nothing touches it.
  if (size.kind() == proto::SizeExpr::SHARE) return size.value();
  // Padding only adds to a whole unit; a slice shrinks to a block on a large mesh.
  if (size.kind() == proto::SizeExpr::UNIT_SLICE && Shards(plan)) return plan.block_elements() * size.value();
  return std::min(BufferBytes(plan, buffer, 1, DeviceClass::kCpu),
                  BufferBytes(plan, buffer, 1, DeviceClass::kCuda));
}

}  // namespace ft
