#include "runtime/cost/scale_timed.h"

#include <cstdint>
#include <unordered_map>

#include "runtime/cost/instruction_cost.h"
#include "runtime/cost/kernel_key.h"

namespace ft {
namespace {

Target FormsOf(const Target& target) {
  Target forms = target;
  forms.clear_timed_kernels();
  return forms;
}

}  // namespace

void ScaleTimed(const proto::Plan& plan, const Mesh& mesh, const Target& timed, Target& target) {
  if (timed.timed_kernels().empty()) return;
  const Target before = FormsOf(timed), after = FormsOf(target);
  std::unordered_map<uint64_t, double> longer;  // by key
  for (const proto::Program& program : plan.programs()) {
    for (const proto::Instruction& kernel : program.instructions()) {
      const Target::TimedKernel* found =
          kernel.opcode() == proto::KERNEL ? FindTimed(timed, plan, kernel) : nullptr;
      if (found == nullptr || longer.contains(found->key())) continue;
      const double seconds = InstructionSeconds(plan, mesh, kernel, before);
      if (seconds > 0) longer[found->key()] = InstructionSeconds(plan, mesh, kernel, after) / seconds;
    }
  }
  for (Target::TimedKernel& kernel : *target.mutable_timed_kernels())
    if (const auto found = longer.find(kernel.key()); found != longer.end())
      kernel.set_seconds(kernel.seconds() * found->second);
}

}  // namespace ft
