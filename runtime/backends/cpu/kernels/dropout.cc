// dropout, which is its own gradient's kernel too.
#include "runtime/backends/cpu/kernels/dropout.h"

#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/register.h"

namespace ft::cpu {
namespace {

constexpr int64_t kCostPerElement = 16;  // of ten rounds for four words, in multiply-adds

KernelOr MakeDropout(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 2, 1));
  const Tensor &x = context.in(0), &rng = context.in(1), &r = context.out(0);
  FT_RETURN_IF_ERROR(CheckFloat(x, "x"));
  FT_RETURN_IF_ERROR(CheckSameShape(r, "result", x));
  FT_ASSIGN_OR_RETURN(const DropoutRule rule, ReadDropout(context.attributes, rng));
  const int64_t elements = x.elements();
  const int threads = ThreadsFor(context.num_threads, kCostPerElement * elements);
  return MakeKernel(
      [=, routine = context.routines.random.dropout[FloatIndex(x.dtype)], from = x.data, to = r.data] {
        const DropoutArgs args = DropoutOf(rule, elements);
        ParallelRanges(elements, kGrain, threads,
                       [&](int64_t begin, int64_t end) { routine(args, from, to, begin, end); });
      });
}

}  // namespace

void RegisterDropout(KernelRegistry& registry, Isa isa) { Add<MakeDropout>(registry, "dropout", isa); }

}  // namespace ft::cpu
