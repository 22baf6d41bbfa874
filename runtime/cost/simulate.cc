#include "runtime/cost/simulate.h"

#include <algorithm>

#include "runtime/cost/instruction_cost.h"
#include "runtime/plan/report.h"

namespace ft {

void SimulatedProgram::AddTotals(const SimulatedProgram& other, uint64_t times) {
  const double factor = static_cast<double>(times);
  seconds += other.seconds * factor;
  compute_seconds += other.compute_seconds * factor;
  exposed_seconds += other.exposed_seconds * factor;
  launch_seconds += other.launch_seconds * factor;
  slowed_seconds += other.slowed_seconds * factor;
  for (size_t i = 0; i < busy_seconds.size(); ++i) busy_seconds[i] += other.busy_seconds[i] * factor;
  for (const auto& [phase, of_phase] : other.phase_seconds) phase_seconds[phase] += of_phase * factor;
}

std::vector<ReplayItem> ReplayItems(const proto::Plan& plan, const Mesh& mesh, const proto::Program& program,
                                    const Target& target) {
  std::vector<ReplayItem> items;
  items.reserve(static_cast<size_t>(program.instructions_size()));
  double launched = 0;
  for (const proto::Instruction& instruction : program.instructions()) {
    launched += LaunchSeconds(mesh, instruction, target);
    items.push_back({.stream = instruction.stream(),
                     .cost = CostOf(plan, mesh, instruction, target),
                     .launched_s = launched,
                     .after = {instruction.after().begin(), instruction.after().end()}});
  }
  return items;
}

SimulatedProgram SimulateProgram(const proto::Plan& plan, const BoundPlan& bound, int program,
                                 const Target& target) {
  const proto::Program& instructions = plan.programs(program);
  const std::vector<ReplayItem> items = ReplayItems(plan, bound.mesh, instructions, target);
  const std::vector<ReplayedItem> replayed = Replay(items, proto::Stream_ARRAYSIZE);
  SimulatedProgram result;
  result.instructions.resize(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    const ReplayedItem& times = replayed[i];
    const double seconds = times.end - times.begin;
    result.instructions[i].ready = times.ready;
    result.instructions[i].begin = times.begin;
    result.instructions[i].end = times.end;
    result.busy_seconds[static_cast<size_t>(items[i].stream)] += seconds;
    result.seconds = std::max(result.seconds, times.end);
    if (items[i].stream != proto::COMPUTE) continue;
    result.exposed_seconds += times.ready - times.reached;
    result.launch_seconds += times.begin - times.ready;
    result.compute_seconds += seconds;
    if (seconds > 0) result.phase_seconds[instructions.instructions(static_cast<int>(i)).phase()] += seconds;
    result.slowed_seconds += std::max(0.0, seconds - items[i].cost.seconds());
    for (const int earlier : items[i].after)
      result.instructions[static_cast<size_t>(earlier)].waited_at = static_cast<int>(i);
    if (times.last >= 0)
      result.instructions[static_cast<size_t>(times.last)].exposed += times.ready - times.reached;
  }
  return result;
}

SimulatedProgram SimulateStep(const proto::Plan& plan, const BoundPlan& bound, const Target& target) {
  SimulatedProgram step;
  for (int p = 0; p < plan.programs_size(); ++p) {
    const uint64_t runs = RunsInStep(plan, plan.programs(p));
    if (runs > 0) step.AddTotals(SimulateProgram(plan, bound, p, target), runs);
  }
  return step;
}

}  // namespace ft
