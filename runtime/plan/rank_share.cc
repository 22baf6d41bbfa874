#include "runtime/plan/rank_share.h"

#include "runtime/plan/all_to_all.h"
#include "runtime/plan/operand_extent.h"
#include "runtime/plan/size_expr.h"

namespace ft {
double ShareOfRank(const proto::Plan& plan, const Mesh& mesh, const proto::Instruction& kernel) {
  if (const proto::SizeExpr* share = ShareOf(plan, kernel))
    return HasShare(*share, static_cast<uint64_t>(mesh.shard), 0) ? 1 : 0;
  for (const proto::Operand& operand : kernel.in()) {
    if (operand.buffer_plus_one() == 0 || !(operand.whole() || operand.own_slice())) continue;
    const proto::SizeExpr extent = ExtentOf(plan, operand);
    if (extent.kind() != proto::SizeExpr::UNIT_SLICE) continue;
    const uint64_t elements = plan.units(static_cast<int>(extent.unit())).elements();
    const uint64_t slice = SliceElements(elements, plan.block_elements(), mesh.shard);
    return static_cast<double>(slice) / static_cast<double>(elements);
  }
  return 1;
}

uint64_t TransferBytes(const proto::Plan& plan, const Mesh& mesh, const proto::Instruction& transfer) {
  uint64_t bytes = 0;
  for (const proto::Operand& operand :
       transfer.opcode() == proto::ALL_GATHER ? transfer.out() : transfer.in())
    bytes += OperandBytes(plan, operand, static_cast<uint64_t>(mesh.shard));
  return bytes;
}

}  // namespace ft
