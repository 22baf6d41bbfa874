#include "runtime/plan/report.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/dtype.h"
#include "runtime/memplan/memplan.h"
#include "runtime/plan/describe.h"
#include "runtime/plan/mesh.h"

namespace ft {
namespace {

constexpr char kTrainStep[] = "train_step";

uint64_t OperandBytes(const proto::Operand& operand, const BoundPlan& bound) {
  if (operand.whole()) return bound.sizes[operand.buffer_plus_one() - 1];
  uint64_t bytes = SizeOf(static_cast<DType>(operand.dtype()));
  for (uint64_t extent : operand.shape()) bytes *= extent;
  return bytes;
}

bool LiveAtPeak(const proto::Buffer& buffer, const BoundArena& arena) {
  return buffer.persistent() ||
         (buffer.program() == arena.peak_program && buffer.first() <= arena.peak_instruction &&
          arena.peak_instruction <= buffer.last());
}

MemoryReport ReportMemory(const proto::Plan& plan, const BoundPlan& bound) {
  MemoryReport report;
  report.arena_bytes = bound.arena_bytes();
  report.host_arena_bytes = bound.host_arena_bytes();
  uint64_t used = 0;
  for (int i = 0; i < plan.buffers_size(); ++i) {
    const proto::Buffer& buffer = plan.buffers(i);
    if (buffer.space() != proto::DEVICE || !LiveAtPeak(buffer, bound.device)) continue;
    const uint64_t bytes = RoundUp(bound.sizes[i]);
    report.by_class[buffer.class_()] += bytes;
    used += bytes;
  }
  report.padding = report.arena_bytes - used;
  if (bound.device.max_live_bytes > bound.device.persistent_bytes) {
    report.peak = InstructionPlace(plan, bound.device.peak_program, bound.device.peak_instruction);
  }
  const auto size_of = [&](uint32_t plus_one) { return plus_one == 0 ? 0 : bound.sizes[plus_one - 1]; };
  for (const auto& unit : plan.unit_buffers()) {
    report.at_rest.parameters += size_of(unit.parameters_plus_one());
    report.at_rest.gradients += size_of(unit.gradients_plus_one());
    report.at_rest.optimizer_state += size_of(unit.exp_avg_plus_one()) + size_of(unit.exp_avg_sq_plus_one());
  }
  return report;
}

void AddTraffic(const proto::Instruction& instruction, const BoundPlan& bound, Traffic& traffic) {
  const uint64_t ranks = AxisSize(bound.mesh, instruction.axis());
  switch (instruction.opcode()) {
    case proto::ALL_GATHER:  // every slice goes to all others
      traffic.all_gather.bytes += OperandBytes(instruction.in(0), bound) * (ranks - 1);
      ++traffic.all_gather.count;
      return;
    case proto::REDUCE_SCATTER:
      traffic.reduce_scatter.bytes += OperandBytes(instruction.out(0), bound) * (ranks - 1);
      ++traffic.reduce_scatter.count;
      return;
    case proto::ALL_REDUCE:  // a reduce-scatter and an all-gather
      traffic.all_reduce.bytes += 2 * OperandBytes(instruction.in(0), bound) * (ranks - 1) / ranks;
      ++traffic.all_reduce.count;
      return;
    default:
      return;
  }
}

TrafficReport ReportTraffic(const proto::Plan& plan, const proto::Program& program, const BoundPlan& bound) {
  TrafficReport report;
  report.by_unit.resize(plan.units_size());
  for (const proto::Instruction& instruction : program.instructions()) {
    AddTraffic(instruction, bound, report.total);
    const uint32_t unit = instruction.unit_plus_one();
    AddTraffic(instruction, bound, unit == 0 ? report.other : report.by_unit[unit - 1]);
  }
  return report;
}

// A kernel over a slice of a unit is costed for the whole unit, since a plan does not know the ranks.
uint64_t FlopsHere(const proto::Plan& plan, const BoundPlan& bound, const proto::Instruction& instruction) {
  for (const proto::Operand& operand : instruction.in()) {
    if (operand.buffer_plus_one() == 0 || !operand.whole()) continue;
    const proto::SizeExpr& size = plan.buffers(operand.buffer_plus_one() - 1).size();
    if (size.kind() != proto::SizeExpr::UNIT_SLICE) continue;
    const double part = static_cast<double>(bound.slices[size.unit()]) / plan.units(size.unit()).elements();
    return static_cast<uint64_t>(instruction.flops() * part);
  }
  return instruction.flops();
}

FlopsReport ReportFlops(const proto::Plan& plan, const proto::Program& program, const BoundPlan& bound) {
  FlopsReport report;
  for (const proto::Instruction& instruction : program.instructions()) {
    const uint64_t flops = FlopsHere(plan, bound, instruction);
    if (instruction.phase() == "forward") report.forward += flops;
    if (instruction.phase() == "backward") report.backward += flops;
    if (instruction.phase() == "optimizer") report.optimizer += flops;
  }
  return report;
}

}  // namespace

uint64_t CountParameters(const proto::Plan& plan) {
  uint64_t total = 0;
  for (const proto::Parameter& parameter : plan.parameters()) {
    uint64_t elements = 1;
    for (uint64_t extent : parameter.shape()) elements *= extent;
    total += elements;
  }
  return total;
}

PlanReport ReportPlan(const proto::Plan& plan, const BoundPlan& bound) {
  PlanReport report;
  report.memory = ReportMemory(plan, bound);
  report.parameters = CountParameters(plan);
  report.traffic.by_unit.resize(plan.units_size());
  for (const proto::Program& program : plan.programs()) {
    if (program.name() != kTrainStep) continue;
    report.traffic = ReportTraffic(plan, program, bound);
    report.flops = ReportFlops(plan, program, bound);
  }
  return report;
}

}  // namespace ft
