#include "runtime/plan/operand_extent.h"

#include "runtime/base/dtype.h"
#include "runtime/plan/mesh.h"
#include "runtime/plan/size_expr.h"

namespace ft {
namespace {

uint64_t ShapeBytes(const proto::Operand& operand) {
  constexpr uint64_t kLimit = uint64_t{1} << 60;
  uint64_t bytes = SizeOf(static_cast<DType>(operand.dtype()));
  for (uint64_t extent : operand.shape()) {
    if (extent > kLimit || bytes > kLimit / extent) return kLimit;
    bytes *= extent;
  }
  return bytes;
}

const proto::SizeExpr& BufferSize(const proto::Plan& plan, const proto::Operand& operand) {
  return plan.buffers(operand.buffer_plus_one() - 1).size();
}

}  // namespace

proto::SizeExpr ExtentOf(const proto::Plan& plan, const proto::Operand& operand) {
  proto::SizeExpr extent;
  if (operand.whole() || operand.own_slice()) {
    extent = BufferSize(plan, operand);
    if (operand.own_slice()) extent.set_kind(proto::SizeExpr::UNIT_SLICE);
  } else {
    if (BufferSize(plan, operand).kind() == proto::SizeExpr::SHARE) extent = BufferSize(plan, operand);
    extent.set_value(ShapeBytes(operand));
  }
  return extent;
}

bool SameOnEveryMesh(const proto::Plan& plan, const proto::SizeExpr& a, const proto::SizeExpr& b) {
  if (!Shards(plan)) return SizeInBytes(plan, a, 1) == SizeInBytes(plan, b, 1);
  if (a.kind() != b.kind() || a.value() != b.value()) return false;
  if (a.kind() == proto::SizeExpr::SHARE) return a.index() == b.index() && a.count() == b.count();
  return !IsOfUnit(a) || plan.units(a.unit()).elements() == plan.units(b.unit()).elements();
}

Region RegionOf(const proto::Plan& plan, const proto::Operand& operand) {
  if (!operand.whole() && !operand.own_slice())
    return {.own = false, .bytes = {operand.offset(), operand.offset() + ShapeBytes(operand)}};
  const proto::SizeExpr& size = BufferSize(plan, operand);
  const bool fixed = !IsOfUnit(size) || !Shards(plan);
  if (operand.own_slice() && !fixed) return {.own = true, .bytes = {}};
  return {.own = false, .bytes = {0, fixed ? SizeInBytes(plan, size, 1) : Interval::kEverything}};
}

uint64_t OperandBytes(const proto::Plan& plan, const proto::Operand& operand, uint64_t shards) {
  if (operand.buffer_plus_one() == 0) return 0;
  return SizeInBytes(plan, ExtentOf(plan, operand), shards);
}

}  // namespace ft
