#include "runtime/plan/simulate.h"

#include <algorithm>

#include "runtime/plan/kernel_cost.h"
#include "runtime/plan/report.h"

namespace ft {
namespace {

// The last to end of what an instruction waits for; -1 when it waits for nothing.
int LastOf(const proto::Instruction& instruction, const std::vector<SimulatedInstruction>& done) {
  int last = -1;
  for (const uint32_t earlier : instruction.after()) {
    if (last < 0 || done[earlier].end > done[static_cast<size_t>(last)].end) last = static_cast<int>(earlier);
  }
  return last;
}

}  // namespace

void SimulatedProgram::AddTotals(const SimulatedProgram& other, uint64_t times) {
  const double factor = static_cast<double>(times);
  seconds += other.seconds * factor;
  compute_seconds += other.compute_seconds * factor;
  exposed_seconds += other.exposed_seconds * factor;
  for (size_t i = 0; i < busy_seconds.size(); ++i) busy_seconds[i] += other.busy_seconds[i] * factor;
}

SimulatedProgram SimulateProgram(const proto::Plan& plan, const BoundPlan& bound, int program,
                                 const Target& target) {
  SimulatedProgram result;
  std::array<double, proto::Stream_ARRAYSIZE> is_free = {};
  for (const proto::Instruction& instruction : plan.programs(program).instructions()) {
    const int index = static_cast<int>(result.instructions.size());
    double& stream = is_free[instruction.stream()];
    const int last = LastOf(instruction, result.instructions);
    const double ready = last < 0 ? 0 : result.instructions[static_cast<size_t>(last)].end;
    const double seconds = InstructionSeconds(plan, bound.mesh, instruction, target);
    const double begin = std::max(stream, ready);
    if (instruction.stream() == proto::COMPUTE) {
      result.exposed_seconds += begin - stream;
      result.compute_seconds += seconds;
      for (const uint32_t earlier : instruction.after()) result.instructions[earlier].waited_at = index;
      if (last >= 0) result.instructions[static_cast<size_t>(last)].exposed += begin - stream;
    }
    result.busy_seconds[instruction.stream()] += seconds;
    stream = begin + seconds;
    result.seconds = std::max(result.seconds, stream);
    result.instructions.push_back({.begin = begin, .end = stream});
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
