#include "tools/ftc/report/limits.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "runtime/cost/instruction_cost.h"
#include "runtime/cost/simulate.h"
#include "runtime/plan/rank_share.h"
#include "runtime/plan/report.h"
#include "tools/ftc/report/plan_columns.h"

namespace ftc {
namespace {

bool IsDeviceKernel(const ft::proto::Instruction& instruction) {
  return instruction.opcode() == ft::proto::KERNEL && instruction.stream() == ft::proto::COMPUTE;
}

// Without name and count.
KernelGroup FloorsOf(const ft::proto::Plan& plan, const ft::BoundPlan& bound,
                     const ft::proto::Instruction& kernel, const ft::Target& target) {
  const double share = ft::ShareOfRank(plan, bound.mesh, kernel);
  const auto part = [&](uint64_t whole) { return static_cast<uint64_t>(share * static_cast<double>(whole)); };
  KernelGroup one;
  one.dtype = ft::KernelType(kernel);
  one.flops = part(kernel.flops());
  one.bytes = part(kernel.bytes());
  const double computing = static_cast<double>(one.flops) / ft::RateOf(target, one.dtype).reached();
  const double moving = static_cast<double>(one.bytes) / target.memory_bytes_per_s();
  one.bound = computing > moving ? Bound::kArithmetic : Bound::kMemory;
  one.seconds = ft::InstructionSeconds(plan, bound.mesh, kernel, target);
  return one;
}

// The instruction that a wait of `compute` is blamed on, as SimulateProgram does: the last to end.
const ft::proto::Instruction* Blamed(const ft::proto::Program& program, const ft::SimulatedProgram& run,
                                     const ft::proto::Instruction& instruction) {
  int last = -1;
  for (const uint32_t earlier : instruction.after()) {
    if (last < 0 || run.instructions[earlier].end > run.instructions[static_cast<size_t>(last)].end)
      last = static_cast<int>(earlier);
  }
  return last < 0 ? nullptr : &program.instructions(last);
}

void AddProgram(const ft::proto::Plan& plan, const ft::BoundPlan& bound, const ft::Target& target, int number,
                double runs, StepLimits& limits) {
  const ft::proto::Program& program = plan.programs(number);
  const ft::SimulatedProgram run = ft::SimulateProgram(plan, bound, number, target);
  double computed_until = 0;  // by `compute`
  for (int i = 0; i < program.instructions_size(); ++i) {
    const ft::proto::Instruction& instruction = program.instructions(i);
    if (instruction.stream() != ft::proto::COMPUTE) continue;
    const ft::SimulatedInstruction& times = run.instructions[static_cast<size_t>(i)];
    // Nothing to blame: ready at once.
    if (const ft::proto::Instruction* blamed = Blamed(program, run, instruction))
      limits.exposed_seconds[blamed->stream()] += runs * (times.ready - computed_until);
    limits.launch_seconds += runs * (times.begin - times.ready);
    computed_until = times.end;
    const double seconds = times.end - times.begin;
    if (IsDeviceKernel(instruction) &&
        FloorsOf(plan, bound, instruction, target).bound == Bound::kArithmetic) {
      limits.arithmetic_seconds += runs * seconds;
    } else {
      limits.memory_seconds += runs * seconds;
    }
  }
  limits.tail_seconds += runs * (run.seconds - computed_until);
}

}  // namespace

double StepLimits::total() const {
  double sum = arithmetic_seconds + memory_seconds + launch_seconds + tail_seconds;
  for (const double seconds : exposed_seconds) sum += seconds;
  return sum;
}

std::string StepLimits::Largest() const {
  double most = arithmetic_seconds;
  std::string name = "arithmetic";
  const auto compare = [&](double seconds, const std::string& what) {
    if (seconds > most) most = seconds, name = what;
  };
  compare(memory_seconds, "memory");
  for (size_t stream = 0; stream < exposed_seconds.size(); ++stream)
    compare(exposed_seconds[stream], StreamKey(static_cast<ft::proto::Stream>(stream)));
  compare(launch_seconds, "launch");
  compare(tail_seconds, "tail");
  return name;
}

std::vector<KernelGroup> KernelGroups(const ft::proto::Plan& plan, const ft::BoundPlan& bound,
                                      const ft::Target& target) {
  std::map<std::tuple<std::string, std::string, ft::proto::DType, uint64_t, uint64_t>, KernelGroup> groups;
  for (const ft::proto::Program& program : plan.programs()) {
    const uint64_t runs = ft::RunsInStep(plan, program);
    if (runs == 0) continue;
    for (const ft::proto::Instruction& instruction : program.instructions()) {
      if (!IsDeviceKernel(instruction)) continue;
      KernelGroup one = FloorsOf(plan, bound, instruction, target);
      one.kernel = instruction.kernel();
      one.phase = instruction.phase();
      one.layer = instruction.layer();
      KernelGroup& group =
          groups.try_emplace({one.kernel, one.phase, one.dtype, one.flops, one.bytes}, one).first->second;
      group.count += runs;
      group.total_seconds += static_cast<double>(runs) * one.seconds;
    }
  }
  std::vector<KernelGroup> sorted;
  for (auto& [key, group] : groups) {
    group.seconds = group.total_seconds / static_cast<double>(group.count);
    sorted.push_back(std::move(group));
  }
  std::stable_sort(sorted.begin(), sorted.end(), [](const KernelGroup& a, const KernelGroup& b) {
    return a.total_seconds > b.total_seconds;
  });
  return sorted;
}

StepLimits LimitsOf(const ft::proto::Plan& plan, const ft::BoundPlan& bound, const ft::Target& target) {
  StepLimits limits;
  for (int p = 0; p < plan.programs_size(); ++p) {
    const uint64_t runs = ft::RunsInStep(plan, plan.programs(p));
    if (runs > 0) AddProgram(plan, bound, target, p, static_cast<double>(runs), limits);
  }
  return limits;
}

}  // namespace ftc
