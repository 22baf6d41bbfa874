#include "runtime/plan/kernel_cost.h"

#include <algorithm>

#include "runtime/plan/operand_extent.h"
#include "runtime/plan/size_expr.h"
#include "runtime/plan/verify_transfers.h"

namespace ft {
namespace {

double KernelSecondsOfRank(const proto::Plan& plan, const Mesh& mesh, const proto::Instruction& kernel,
                           const Target& target) {
  const double share = ShareOfRank(plan, mesh, kernel);
  const auto part = [&](uint64_t whole) { return static_cast<uint64_t>(share * static_cast<double>(whole)); };
  if (kernel.stream() == proto::HOST_COMPUTE) return HostKernelSeconds(target, part(kernel.bytes()));
  return KernelSeconds(target, part(kernel.flops()), part(kernel.bytes()), KernelType(kernel));
}

}  // namespace

proto::DType KernelType(const proto::Instruction& kernel) {
  const auto found = std::find_if(kernel.in().begin(), kernel.in().end(), [](const proto::Operand& operand) {
    return operand.buffer_plus_one() != 0 &&
           (operand.dtype() == proto::BF16 || operand.dtype() == proto::F16);
  });
  return found == kernel.in().end() ? proto::F32 : found->dtype();
}

double ShareOfRank(const proto::Plan& plan, const Mesh& mesh, const proto::Instruction& kernel) {
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

double InstructionSeconds(const proto::Plan& plan, const Mesh& mesh, const proto::Instruction& instruction,
                          const Target& target) {
  if (instruction.opcode() == proto::KERNEL) return KernelSecondsOfRank(plan, mesh, instruction, target);
  if (!IsTransfer(instruction.opcode())) return 0;
  const uint64_t bytes = TransferBytes(plan, mesh, instruction);
  if (instruction.opcode() == proto::COPY) return CopySeconds(target, bytes);
  const auto per_node = static_cast<int>(target.ranks_per_node());
  return CollectiveSeconds(target, instruction.opcode(), bytes,
                           LayoutOnNodes(mesh, instruction.axis(), per_node));
}

}  // namespace ft
