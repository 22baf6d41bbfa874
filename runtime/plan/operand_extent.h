// How many bytes an operand has, and which, in terms that hold on every mesh.
#pragma once

#include <cstdint>

#include "runtime/plan/interval_set.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// Of an operand that is present. The whole of a buffer has the buffer's size, the own slice of a unit's flat
// buffer that of a slice; anything else is constant where it is there at all. A product of dimensions that is
// absurd saturates at 2^60.
proto::SizeExpr ExtentOf(const proto::Plan& plan, const proto::Operand& operand);

// Whether two sizes are the same on every mesh that the plan can run on.
bool SameOnEveryMesh(const proto::Plan& plan, const proto::SizeExpr& a, const proto::SizeExpr& b);

// The bytes of a buffer that an operand covers.
struct Region {
  // The slice of this rank, of a buffer that is cut into slices: bytes that differ from rank to rank.
  bool own = false;
  Interval bytes;  // else; up to kEverything for a whole buffer whose size depends on the mesh
};
Region RegionOf(const proto::Plan& plan, const proto::Operand& operand);

// The bytes that `operand` has on a mesh with `shards` ranks on its shard axis.
uint64_t OperandBytes(const proto::Plan& plan, const proto::Operand& operand, uint64_t shards);

}  // namespace ft
