// accumulate and accumulated: sums over micro-steps.
#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/kernels/accumulate/cpu_loops.h"
#include "runtime/kernels/accumulate/operands.h"

namespace ft::cpu {
namespace {

KernelOr MakeAccumulate(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const AccumulateOperands read, ReadAccumulate(context.operands));
  return MakeElementwise(context.loops.accumulate.accumulate[FloatIndex(read.x.dtype)],
                         AccumulateArgs{read.x.data, read.state.data, nullptr}, read.x.elements(),
                         context.num_threads);
}

KernelOr MakeAccumulated(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const AccumulateOperands read, ReadAccumulated(context.operands));
  return MakeElementwise(context.loops.accumulate.accumulated[FloatIndex(read.x.dtype)],
                         AccumulateArgs{read.x.data, read.state.data, read.result}, read.x.elements(),
                         context.num_threads);
}

}  // namespace

void RegisterAccumulate(KernelRegistry& registry, Isa isa) {
  Add<MakeAccumulate>(registry, "accumulate", isa);
  Add<MakeAccumulated>(registry, "accumulated", isa);
}

}  // namespace ft::cpu
