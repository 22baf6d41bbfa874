// reduce.
#include "runtime/backends/cuda/register.h"
#include "runtime/backends/cuda/routines/reductions.h"
#include "runtime/device/reduction.h"

namespace ft::cuda {
namespace {

static_assert(kMostLoops == kMaxRank);

Loops LoopsOf(const ReductionLoops& reduction) {
  Loops loops = {};
  loops.rank = reduction.rank;
  std::copy_n(reduction.dims.begin(), reduction.rank, loops.dims);
  std::copy_n(reduction.strides.begin(), reduction.rank, loops.strides);
  return loops;
}

Reducer ReducerOf(ReductionKind kind) {
  if (kind == ReductionKind::kSum) return Reducer::kSum;
  return kind == ReductionKind::kMax ? Reducer::kMax : Reducer::kMin;
}

KernelOr MakeReduce(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const Reduction reduction, CheckReduction(context.operands, context.attributes));
  const ReduceArgs args = {.x = reduction.x,
                           .r = reduction.result,
                           .result = reduction.result_dtype,
                           .elements = reduction.kept.count(),
                           .count = reduction.reduced.count(),
                           .kept = LoopsOf(reduction.kept),
                           .reduced = LoopsOf(reduction.reduced)};
  return MakeKernel([args, reducer = ReducerOf(reduction.kind), dtype = reduction.dtype](
                        StreamHandle stream) { return Reduce(args, reducer, dtype, stream); });
}

}  // namespace

void RegisterReduce(KernelTable& table) { table.Add("reduce", &MakeReduce); }

}  // namespace ft::cuda
