#include "runtime/plan/report.h"

#include <algorithm>

#include "runtime/memplan/memplan.h"
#include "runtime/plan/describe.h"
#include "runtime/plan/inputs.h"
#include "runtime/plan/report_parts.h"
#include "runtime/plan/unit_parameters.h"

namespace ft {
namespace {

bool LiveAtPeak(const proto::Buffer& buffer, const BoundArena& arena) {
  return buffer.persistent() ||
         (buffer.program() == arena.peak_program && buffer.first() <= arena.peak_instruction &&
          arena.peak_instruction <= buffer.last());
}

ArenaReport ReportArena(const proto::Plan& plan, const BoundPlan& bound, proto::MemorySpace space) {
  const BoundArena& arena = space == proto::DEVICE ? bound.device : bound.host;
  ArenaReport report;
  report.arena_bytes = arena.arena_bytes;
  report.max_live_bytes = arena.max_live_bytes;
  report.persistent_bytes = arena.persistent_bytes;
  uint64_t used = 0;
  for (int i = 0; i < plan.buffers_size(); ++i) {
    const proto::Buffer& buffer = plan.buffers(i);
    if (buffer.space() != space || !LiveAtPeak(buffer, arena)) continue;
    if (bound.sizes[i] == 0) continue;
    const uint64_t bytes = RoundUp(bound.sizes[i]);
    report.by_class[buffer.class_()] += bytes;
    report.live.push_back({static_cast<uint32_t>(i), bytes});
    used += bytes;
  }
  std::stable_sort(report.live.begin(), report.live.end(),
                   [](const LiveBuffer& a, const LiveBuffer& b) { return a.bytes > b.bytes; });
  report.padding = report.arena_bytes - used;
  if (arena.max_live_bytes > arena.persistent_bytes)
    report.peak = InstructionPlace(plan, arena.peak_program, arena.peak_instruction);
  return report;
}

MemoryReport::AtRest ReportAtRest(const proto::Plan& plan, const BoundPlan& bound) {
  MemoryReport::AtRest at_rest;
  for (const proto::Plan::UnitState& state : plan.unit_states()) {
    const uint64_t bytes = bound.sizes[state.buffer()];
    if (state.role() == "parameters") {
      at_rest.parameters += bytes;
    } else if (state.role() == "gradients" || state.role() == "accumulated") {
      at_rest.gradients += bytes;
    } else {
      at_rest.optimizer_state += bytes;
    }
    if (state.role() == "accumulated") at_rest.accumulated += bytes;
    if (state.role() == "master") at_rest.master += bytes;
    if (plan.buffers(state.buffer()).space() == proto::HOST) at_rest.host += bytes;
  }
  return at_rest;
}

// Scalars are f32 at any precision: gradients of losses, scales.
bool IsScalar(const proto::Operand& operand) {
  return operand.buffer_plus_one() == 0 ||
         (operand.shape().empty() && !operand.whole() && !operand.own_slice());
}

uint64_t FrozenBytesEach(const proto::Plan& plan) {
  std::vector<uint64_t> bytes(static_cast<size_t>(plan.units_size()));
  for (const proto::Plan::UnitState& state : plan.unit_states())
    bytes[state.unit()] += plan.buffers(static_cast<int>(state.buffer())).size().value();
  uint64_t most = 0;
  for (const proto::Parameter& parameter : plan.parameters())
    if (parameter.frozen()) most = std::max(most, bytes[parameter.unit()]);
  return most;
}

}  // namespace

proto::DType MainType(const proto::Plan& plan) {
  proto::DType dtype = proto::F32;
  uint64_t most = 0;
  for (const proto::Program& program : plan.programs()) {
    for (const proto::Instruction& instruction : program.instructions()) {
      if (instruction.flops() <= most) continue;
      const auto operand = std::find_if_not(instruction.in().begin(), instruction.in().end(), IsScalar);
      if (operand == instruction.in().end()) continue;
      most = instruction.flops();
      dtype = operand->dtype();
    }
  }
  return dtype;
}

uint64_t ModelFlops(const proto::Plan& plan) {
  uint64_t flops = 0;
  for (const proto::Program& program : plan.programs())
    flops += ModelFlops(program) * RunsInStep(plan, program);
  return flops;
}

uint64_t CountParameters(const proto::Plan& plan) {
  uint64_t total = 0;
  for (const proto::Parameter& parameter : plan.parameters()) total += ElementsOf(parameter);
  return total;
}

uint64_t CountFrozen(const proto::Plan& plan) {
  uint64_t total = 0;
  for (const proto::Parameter& parameter : plan.parameters())
    if (parameter.frozen()) total += ElementsOf(parameter);
  return total;
}

uint64_t RunsInStep(const proto::Plan& plan, const proto::Program& program) {
  if (program.name() == "train_step") return 1;
  if (program.name() == "eval_step") return EvaluatesOnly(plan) ? 1 : 0;
  return program.name() == "train_micro" ? std::max<uint64_t>(plan.micro_steps(), 1) - 1 : 0;
}

MemoryReport ReportMemory(const proto::Plan& plan, const BoundPlan& bound) {
  return {.device = ReportArena(plan, bound, proto::DEVICE),
          .host = ReportArena(plan, bound, proto::HOST),
          .at_rest = ReportAtRest(plan, bound)};
}

PlanReport ReportPlan(const proto::Plan& plan, const BoundPlan& bound) {
  PlanReport report;
  report.memory = ReportMemory(plan, bound);
  report.micro_steps = std::max<uint64_t>(plan.micro_steps(), 1);
  report.parameters = CountParameters(plan);
  report.frozen = CountFrozen(plan);
  report.frozen_bytes_each = FrozenBytesEach(plan);
  report.traffic.by_unit.resize(plan.units_size());
  for (const proto::Program& program : plan.programs()) {
    report.programs.push_back({.name = program.name(),
                               .runs = RunsInStep(plan, program),
                               .traffic = ReportTraffic(plan, program, bound),
                               .flops = ReportFlops(plan, program, bound)});
    report.traffic.Add(report.programs.back().traffic, report.programs.back().runs);
    report.flops.Add(report.programs.back().flops, report.programs.back().runs);
  }
  return report;
}

}  // namespace ft
