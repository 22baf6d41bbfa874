// accumulate and accumulated: sums over micro-steps.
#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/kernels/accumulate/cpu_loops.h"
#include "runtime/kernels/accumulate/operands.h"

namespace ft::cpu {
namespace {

// Counts, which are few.
KernelOr MakeIntegers(const AccumulateOperands& read) {
  return MakeKernel([x = read.x.as<int64_t>(), state = read.state.as<int64_t>(), elements = read.x.elements(),
                     result = static_cast<int64_t*>(read.result)] {
    for (int64_t i = 0; i < elements; ++i) {
      const int64_t sum = state[i] + x[i];
      state[i] = result == nullptr ? sum : 0;
      if (result != nullptr) result[i] = sum;
    }
  });
}

KernelOr MakeAccumulate(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const AccumulateOperands read, ReadAccumulate(context.operands));
  if (read.x.dtype == DType::kI64) return MakeIntegers(read);
  return MakeElementwise(context.loops.accumulate.accumulate[FloatIndex(read.x.dtype)],
                         AccumulateArgs{read.x.data, read.state.data, nullptr}, read.x.elements(),
                         context.num_threads);
}

KernelOr MakeAccumulated(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const AccumulateOperands read, ReadAccumulated(context.operands));
  if (read.x.dtype == DType::kI64) return MakeIntegers(read);
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
