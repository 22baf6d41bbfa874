#include "runtime/cost/instruction_cost.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/match.h"
#include "runtime/base/dtype.h"
#include "runtime/cost/kernel_class.h"
#include "runtime/cost/kernel_key.h"
#include "runtime/cost/kernels.h"
#include "runtime/cost/transfers.h"
#include "runtime/plan/operand_extent.h"
#include "runtime/plan/rank_share.h"
#include "runtime/plan/verify_transfers.h"

namespace ft {
namespace {

double Times(double times) { return times == 0 ? 1 : times; }

uint64_t Elements(const proto::Operand& operand) {
  uint64_t elements = 1;
  for (const uint64_t extent : operand.shape()) elements *= extent;
  return elements;
}

// A kernel with the part of its work that falls to this rank.
struct Work {
  const proto::Instruction& kernel;
  proto::DType dtype;
  double flops, bytes;
};

double Longest(const Target& target, const Work& work, double rate) {
  return std::max(work.flops / rate, MemorySeconds(target, work.bytes));
}

// Products of experts: of grouped_dot [rows, k] x [groups, k, n], of grouped_dot_grad [groups, k, n] of its
// result; 1 for any other. Routes are taken to be even.
uint64_t GroupsOf(const proto::Instruction& kernel) {
  if (!kernel.kernel().starts_with("grouped_dot")) return 1;
  const bool is_grad = kernel.kernel().starts_with("grouped_dot_grad");
  if (!is_grad && kernel.in_size() < 2) return 1;
  const proto::Operand& of_groups = is_grad ? kernel.out(0) : kernel.in(1);
  return of_groups.shape_size() == 3 ? std::max<uint64_t>(1, of_groups.shape(0)) : 1;
}

// What it sums over follows from what it makes and its FLOPs, of which a bias is a small part.
ProductShape ShapeOf(const Work& work) {
  if (work.kernel.out().empty() || work.kernel.out(0).shape().empty()) return {};
  const proto::Operand& out = work.kernel.out(0);
  const uint64_t elements = std::max<uint64_t>(1, Elements(out));
  const uint64_t columns = std::max<uint64_t>(1, out.shape(out.shape_size() - 1));
  const uint64_t groups = GroupsOf(work.kernel);
  return {.rows = std::max<uint64_t>(1, elements / columns / groups),
          .columns = columns,
          .summed = static_cast<uint64_t>(work.flops / 2 / static_cast<double>(elements)),
          .count = groups};
}

// Logits are made of rows of width k, and of a vocabulary. They are in memory once they are made, and other
// kernels go over them.
double HeadSeconds(const Target& target, const Work& work, uint32_t taken) {
  const auto matrices = [](const proto::Operand& operand) { return operand.shape_size() >= 2; };
  const auto x = std::find_if(work.kernel.in().begin(), work.kernel.in().end(), matrices);
  if (x == work.kernel.in().end()) return Longest(target, work, RateOf(target, work.dtype).reached());
  const auto weight = std::find_if(x + 1, work.kernel.in().end(), matrices);
  if (weight == work.kernel.in().end()) return Longest(target, work, RateOf(target, work.dtype).reached());
  const uint64_t width = std::max<uint64_t>(1, x->shape(x->shape_size() - 1));
  const ProductShape logits{.rows = Elements(*x) / width, .columns = weight->shape(0), .summed = width};
  return Longest(target, work, ProductRate(target, work.dtype, logits, taken)) +
         MemorySeconds(target, target.stack().logit_bytes() * static_cast<double>(logits.rows) *
                                   static_cast<double>(logits.columns));
}

double AttentionSeconds(const Target& target, const Work& work) {
  const bool is_backward = absl::StrContains(work.kernel.kernel(), "_grad");
  // The gradient of the result, or the result: [batch, length, heads x size].
  const proto::Operand* wide = is_backward                 ? &work.kernel.in(0)
                               : work.kernel.out().empty() ? nullptr
                                                           : &work.kernel.out(0);
  uint64_t heads = 1;
  for (const proto::Attribute& attribute : work.kernel.attributes())
    if (attribute.name() == "heads" && attribute.i() > 0) heads = static_cast<uint64_t>(attribute.i());
  if (wide == nullptr || wide->shape_size() != 3)
    return Longest(target, work, RateOf(target, work.dtype).reached());
  return Longest(target, work,
                 AttentionRate(target, work.dtype, wide->shape(2) / heads, wide->shape(1), is_backward));
}

// Sums beside a product are of an operand that CPUs read again. GPUs are taken to have the library's
// epilogue, as of GELU; they read it again, too, where algorithms may not be chosen by timing.
double SumsSeconds(const Target& target, const Work& work) {
  if (target.cuda() || work.kernel.kernel() != "matmul_bias_grad") return 0;
  bool of_a = false;
  for (const proto::Attribute& attribute : work.kernel.attributes())
    if (attribute.name() == "of_a") of_a = attribute.i() != 0;
  const proto::Operand& summed = work.kernel.in(of_a ? 0 : 1);
  const double bytes = static_cast<double>(Elements(summed) * SizeOf(static_cast<DType>(summed.dtype())));
  return MemorySeconds(target, bytes * Times(target.stack().elementwise_bytes()));
}

// Whether a product rounds its operands to floats of 8 bits.
bool RoundsToFloat8(const proto::Instruction& kernel) {
  return std::any_of(kernel.attributes().begin(), kernel.attributes().end(),
                     [](const proto::Attribute& attribute) { return attribute.name() == "scaling"; });
}

// How much faster products of these are than of bf16; CPUs multiply them as bf16.
double GainOfFloat8(const Target& target) {
  const bool is_known = target.cuda() && target.float8().reached() > 0;
  return is_known ? target.float8().reached() / target.bf16().reached() : 1;
}

double RoundedElements(const Work& work) {
  double elements = 0;
  for (int i = 0; i < std::min(2, work.kernel.in_size()); ++i)
    elements += static_cast<double>(Elements(work.kernel.in(i)));
  return elements;
}

// Operands are read for their largest element, read again and written in 8 bits, on CPUs in 16.
double RoundingSeconds(const Target& target, const Work& work) {
  const int kernels = target.cuda() ? 4 : 0;  // that are launched beside the product
  return MemorySeconds(target, RoundedElements(work) * (target.cuda() ? 5 : 6)) +
         kernels * target.kernel_latency_s();
}

double ProductSeconds(const Target& target, const Work& work, uint32_t taken) {
  const double rate = ProductRate(target, work.dtype, ShapeOf(work), taken);
  if (!RoundsToFloat8(work.kernel)) return Longest(target, work, rate) + SumsSeconds(target, work);
  // What an instruction moves has 4 bytes of each element for rounding (MatmulOp::getBytes).
  const Work product{work.kernel, work.dtype, work.flops,
                     std::max(0.0, work.bytes - 4 * RoundedElements(work))};
  return Longest(target, product, rate * GainOfFloat8(target)) + RoundingSeconds(target, work);
}

double BodySeconds(const Target& target, const Work& work, uint32_t taken) {
  switch (KernelClassOf(work.kernel.kernel())) {
    case KernelClass::kProduct:
      return ProductSeconds(target, work, taken);
    case KernelClass::kAttention:
      return AttentionSeconds(target, work);
    case KernelClass::kHead:
      return HeadSeconds(target, work, taken);
    case KernelClass::kGenerated:
      return Longest(
          target,
          {work.kernel, work.dtype, work.flops, work.bytes * Times(target.stack().elementwise_bytes())},
          RateOf(target, work.dtype).reached());
    case KernelClass::kUpdate:
      return Longest(target,
                     {work.kernel, work.dtype, work.flops, work.bytes * Times(target.stack().update_bytes())},
                     RateOf(target, work.dtype).reached());
    case KernelClass::kReduction:
      return Longest(
          target, {work.kernel, work.dtype, work.flops, work.bytes * Times(target.stack().reduction_bytes())},
          RateOf(target, work.dtype).reached());
    case KernelClass::kLookUp:
    case KernelClass::kMemory:
      break;
  }
  return Longest(target, work, RateOf(target, work.dtype).reached());
}

constexpr proto::Opcode kOpcodes[kTransferKinds] = {proto::ALL_GATHER, proto::REDUCE_SCATTER,
                                                    proto::ALL_REDUCE, proto::COPY};

const Target::Overlap* OverlapOf(const Target& target, proto::Opcode opcode) {
  for (const Target::Overlap& overlap : target.overlaps())
    if (overlap.opcode() == opcode) return &overlap;
  return nullptr;
}

// What was timed counts before any form; what it does by the number of its elements falls to ranks by share.
void TakeTimed(const Target::TimedKernel& timed, double share, InstructionCost& cost) {
  cost.latency_s = std::min(cost.latency_s, timed.seconds());
  cost.body_s = (timed.seconds() - cost.latency_s) * share / timed.share();
}

InstructionCost KernelCost(const proto::Plan& plan, const Mesh& mesh, const proto::Instruction& kernel,
                           const Target& target) {
  const double share = ShareOfRank(plan, mesh, kernel);
  if (share == 0) return {};
  // Whole FLOPs and bytes, as they are printed.
  const auto part = [&](uint64_t whole) {
    return static_cast<double>(static_cast<uint64_t>(share * static_cast<double>(whole)));
  };
  InstructionCost cost{.latency_s = target.kernel_latency_s(), .occupies = Occupies::kDevice};
  if (kernel.stream() == proto::HOST_COMPUTE) {
    cost.body_s = HostKernelSeconds(target, static_cast<uint64_t>(part(kernel.bytes()))) - cost.latency_s;
    cost.occupies = Occupies::kHost;
    if (const Target::TimedKernel* timed = FindTimed(target, plan, kernel)) TakeTimed(*timed, share, cost);
    return cost;
  }
  const Work work{kernel, KernelType(kernel), part(kernel.flops()), part(kernel.bytes())};
  const double reckoned = BodySeconds(target, work, 0);
  cost.body_s = reckoned;
  if (const Target::TimedKernel* timed = FindTimed(target, plan, kernel)) TakeTimed(*timed, share, cost);
  for (int kind = 0; kind < kTransferKinds && reckoned > 0; ++kind) {
    const Target::Overlap* overlap = OverlapOf(target, kOpcodes[kind]);
    if (overlap == nullptr) continue;
    cost.beside_transfer[kind] =
        (1 + overlap->kernels()) * BodySeconds(target, work, overlap->multiprocessors()) / reckoned;
  }
  return cost;
}

// A collective over one rank copies in the memory of its device what is not in place: on CPUs by the thread
// of its stream, as what goes between host and device does.
TransferCost CopyOfOneRank(const proto::Plan& plan, const Mesh& mesh, const proto::Instruction& transfer,
                           const Target& target) {
  const bool makes_pairs = transfer.opcode() != proto::ALL_TO_ALL;
  uint64_t bytes = makes_pairs ? 0 : TransferBytes(plan, mesh, transfer);
  for (int i = 0; makes_pairs && i < std::min(transfer.in_size(), transfer.out_size()); ++i)
    if (transfer.in(i).buffer_plus_one() != transfer.out(i).buffer_plus_one())
      bytes += OperandBytes(plan, transfer.in(i), static_cast<uint64_t>(mesh.shard));
  if (bytes == 0) return {};
  return target.cuda() ? TransferCost{.bytes_s = MemorySeconds(target, 2.0 * static_cast<double>(bytes))}
                       : CopyCost(target, bytes);
}

InstructionCost TransferCostOf(const proto::Plan& plan, const Mesh& mesh, const proto::Instruction& transfer,
                               const Target& target) {
  const uint64_t bytes = TransferBytes(plan, mesh, transfer);
  InstructionCost cost;
  TransferCost alone;
  proto::Opcode kind = transfer.opcode();
  if (transfer.opcode() == proto::COPY) {
    alone = CopyCost(target, bytes);
    cost.occupies = transfer.stream() == proto::H2D ? Occupies::kToDevice : Occupies::kFromDevice;
  } else {
    const NodeLayout layout = LayoutOnNodes(mesh, transfer.axis(), static_cast<int>(target.ranks_per_node()));
    alone = layout.ranks == 1 ? CopyOfOneRank(plan, mesh, transfer, target)
                              : CollectiveCost(target, transfer.opcode(), bytes, layout);
    if (layout.ranks == 1 && !target.cuda()) kind = proto::COPY;
    if (kind == proto::ALL_TO_ALL) kind = proto::ALL_GATHER;  // as which it slows kernels down
    cost.occupies = layout.nodes > 1 ? Occupies::kNetwork : Occupies::kNodeLink;
  }
  cost.latency_s = alone.latency_s;
  cost.body_s = alone.bytes_s;
  cost.kind = static_cast<TransferKind>(std::find(std::begin(kOpcodes), std::end(kOpcodes), kind) -
                                        std::begin(kOpcodes));
  if (const Target::Overlap* overlap = OverlapOf(target, kind)) cost.beside_kernels = 1 + overlap->transfer();
  return cost;
}

}  // namespace

bool IsProduct(const proto::Instruction& kernel) {
  const KernelClass reckoned = KernelClassOf(kernel.kernel());
  return reckoned == KernelClass::kProduct || reckoned == KernelClass::kHead;
}

proto::DType KernelType(const proto::Instruction& kernel) {
  const auto found = std::find_if(kernel.in().begin(), kernel.in().end(), [](const proto::Operand& operand) {
    return operand.buffer_plus_one() != 0 &&
           (operand.dtype() == proto::BF16 || operand.dtype() == proto::F16);
  });
  return found == kernel.in().end() ? proto::F32 : found->dtype();
}

InstructionCost CostOf(const proto::Plan& plan, const Mesh& mesh, const proto::Instruction& instruction,
                       const Target& target) {
  const bool is_kernel = instruction.opcode() == proto::KERNEL;
  if (!is_kernel && !IsTransfer(instruction.opcode())) return {};
  InstructionCost cost = is_kernel ? KernelCost(plan, mesh, instruction, target)
                                   : TransferCostOf(plan, mesh, instruction, target);
  const double longer = 1 + JitterOf(target, mesh.world_size());
  cost.latency_s *= longer;
  cost.body_s *= longer;
  return cost;
}

double LaunchSeconds(const Mesh& mesh, const proto::Instruction& instruction, const Target& target) {
  if (target.stack().launch_s() == 0) return 0;
  const double longer = 1 + JitterOf(target, mesh.world_size());
  if (IsTransfer(instruction.opcode())) return longer * target.stack().launch_s();
  if (instruction.opcode() != proto::KERNEL || instruction.stream() == proto::HOST_COMPUTE) return 0;
  return longer * target.stack().launch_s() * Times(target.stack().launches());
}

}  // namespace ft
