#include "runtime/plan/report_parts.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "runtime/plan/all_to_all.h"
#include "runtime/plan/attributes.h"
#include "runtime/plan/mesh.h"
#include "runtime/plan/operand_extent.h"
#include "runtime/plan/rank_share.h"
#include "runtime/plan/size_expr.h"
#include "runtime/plan/verify_transfers.h"

namespace ft {
namespace {

// Where the transfers of one kind are counted.
TransferTraffic& KindOf(const proto::Instruction& instruction, Traffic& traffic) {
  switch (instruction.opcode()) {
    case proto::ALL_GATHER:
      return traffic.all_gather;
    case proto::REDUCE_SCATTER:
      return traffic.reduce_scatter;
    case proto::ALL_REDUCE:
      return traffic.all_reduce;
    case proto::ALL_TO_ALL:
      return traffic.all_to_all;
    default:
      return instruction.stream() == proto::H2D ? traffic.h2d : traffic.d2h;
  }
}

// What a rank sends of pair `i`.
uint64_t SentBytes(const proto::Plan& plan, const proto::Instruction& instruction, int i,
                   const BoundPlan& bound) {
  const uint64_t ranks = AxisSize(bound.mesh, instruction.axis()), shards = bound.mesh.shard;
  switch (instruction.opcode()) {
    case proto::ALL_GATHER:  // its slice goes to all others
      return OperandBytes(plan, instruction.in(i), shards) * (ranks - 1);
    case proto::REDUCE_SCATTER:
      return OperandBytes(plan, instruction.out(i), shards) * (ranks - 1);
    case proto::ALL_REDUCE:  // a reduce-scatter and an all-gather
      return 2 * OperandBytes(plan, instruction.in(i), shards) * (ranks - 1) / ranks;
    case proto::ALL_TO_ALL:  // most of it is of others
      return OperandBytes(plan, instruction.in(i), shards) * (ranks - 1) / ranks;
    default:
      return OperandBytes(plan, instruction.in(i), shards);
  }
}

// The unit of which pair `i` moves a flat buffer, or a parameter, of which `moved` has the numbers; -1 for
// anything else.
int UnitOf(const proto::Plan& plan, const proto::Instruction& instruction, int i,
           const std::vector<uint32_t>& moved) {
  const proto::SizeExpr& size = plan.buffers(instruction.in(i).buffer_plus_one() - 1).size();
  if (size.kind() == proto::SizeExpr::SHARE)
    return static_cast<int>(plan.parameters(static_cast<int>(moved[static_cast<size_t>(i)])).unit());
  return IsOfUnit(size) ? static_cast<int>(size.unit()) : -1;
}

}  // namespace

void TransferTraffic::Add(const TransferTraffic& other, uint64_t times) {
  bytes += other.bytes * times;
  count += other.count * times;
  buffers += other.buffers * times;
}

void Traffic::Add(const Traffic& other, uint64_t times) {
  all_gather.Add(other.all_gather, times);
  reduce_scatter.Add(other.reduce_scatter, times);
  all_reduce.Add(other.all_reduce, times);
  all_to_all.Add(other.all_to_all, times);
  h2d.Add(other.h2d, times);
  d2h.Add(other.d2h, times);
}

void TrafficReport::Add(const TrafficReport& more, uint64_t times) {
  total.Add(more.total, times);
  other.Add(more.other, times);
  for (size_t i = 0; i < by_unit.size(); ++i) by_unit[i].Add(more.by_unit[i], times);
  for (size_t i = 0; i < by_axis.size(); ++i) by_axis[i].Add(more.by_axis[i], times);
}

void FlopsReport::Add(const FlopsReport& other, uint64_t times) {
  forward += other.forward * times;
  recompute += other.recompute * times;
  backward += other.backward * times;
  optimizer += other.optimizer * times;
  model += other.model * times;
}

TrafficReport ReportTraffic(const proto::Plan& plan, const proto::Program& program, const BoundPlan& bound) {
  TrafficReport report;
  report.by_unit.resize(plan.units_size());
  for (const proto::Instruction& instruction : program.instructions()) {
    if (!IsTransfer(instruction.opcode())) continue;
    std::set<int> units;
    const std::vector<uint32_t> moved = MovedParameters(instruction);
    for (int i = 0; i < instruction.in_size(); ++i) {
      const int unit = UnitOf(plan, instruction, i, moved);
      const TransferTraffic pair{.bytes = SentBytes(plan, instruction, i, bound), .count = 0, .buffers = 1};
      Traffic& here = unit < 0 ? report.other : report.by_unit[unit];
      for (Traffic* traffic : {&report.total, &report.by_axis[instruction.axis()], &here})
        KindOf(instruction, *traffic).Add(pair, 1);
      if (units.insert(unit).second) ++KindOf(instruction, here).count;
    }
    ++KindOf(instruction, report.total).count;
    ++KindOf(instruction, report.by_axis[instruction.axis()]).count;
  }
  return report;
}

uint64_t ModelFlops(const proto::Program& program) {
  uint64_t flops = 0;
  for (const proto::Instruction& instruction : program.instructions())
    // Neither what is computed again nor the products of an optimizer are the model's.
    if (instruction.phase() != "recompute" && instruction.phase() != "optimizer")
      flops += instruction.model_flops();
  return flops;
}

FlopsReport ReportFlops(const proto::Plan& plan, const proto::Program& program, const BoundPlan& bound) {
  FlopsReport report;
  for (const proto::Instruction& instruction : program.instructions()) {
    const auto flops =
        static_cast<uint64_t>(instruction.flops() * ShareOfRank(plan, bound.mesh, instruction));
    if (instruction.phase() == "forward") report.forward += flops;
    if (instruction.phase() == "recompute") report.recompute += flops;
    if (instruction.phase() == "backward") report.backward += flops;
    if (instruction.phase() == "optimizer") report.optimizer += flops;
  }
  report.model = ModelFlops(program);
  return report;
}

}  // namespace ft
