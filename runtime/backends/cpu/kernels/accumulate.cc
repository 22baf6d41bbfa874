// accumulate and accumulated: sums over micro-steps.
#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/backends/cpu/routines/elementwise.h"

namespace ft::cpu {
namespace {

KernelOr MakeAccumulate(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 1, 1));
  const Tensor &x = context.in(0), &state = context.out(0);
  FT_RETURN_IF_ERROR(CheckFloat(x, "x"));
  FT_RETURN_IF_ERROR(CheckSize(state, "state", x.elements(), x.dtype));
  const AccumulateArgs args = {x.data, state.data, nullptr};
  return MakeElementwise(context.routines.elementwise.accumulate[FloatIndex(x.dtype)], args, x.elements(),
                         context.num_threads);
}

KernelOr MakeAccumulated(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 1, 2));
  const Tensor &x = context.in(0), &y = context.out(0), &state = context.out(1);
  FT_RETURN_IF_ERROR(CheckFloat(x, "x"));
  FT_RETURN_IF_ERROR(CheckSize(y, "result", x.elements(), x.dtype));
  FT_RETURN_IF_ERROR(CheckSize(state, "state", x.elements(), x.dtype));
  const AccumulateArgs args = {x.data, state.data, y.data};
  return MakeElementwise(context.routines.elementwise.accumulated[FloatIndex(x.dtype)], args, x.elements(),
                         context.num_threads);
}

}  // namespace

void RegisterAccumulate(KernelRegistry& registry, Isa isa) {
  Add<MakeAccumulate>(registry, "accumulate", isa);
  Add<MakeAccumulated>(registry, "accumulated", isa);
}

}  // namespace ft::cpu
