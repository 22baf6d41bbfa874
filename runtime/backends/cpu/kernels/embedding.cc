// embedding and embedding_grad.
#include <cstring>

#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/backends/cpu/routines/optimizer.h"
#include "runtime/backends/cpu/routines/rows.h"

namespace ft::cpu {
namespace {

KernelOr MakeEmbedding(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 2, 1));
  const Tensor &ids = context.in(0), &table = context.in(1), &r = context.out(0);
  FT_RETURN_IF_ERROR(CheckPresent(ids, "ids", DType::kI32));
  FT_RETURN_IF_ERROR(CheckPresent(table, "table"));
  FT_RETURN_IF_ERROR(CheckSize(r, "result", ids.elements() * table.last()));
  const EmbeddingArgs args = {ids.as<int32_t>(), table.as<float>(), r.as<float>(), table.rows(),
                              table.last()};
  return MakeRowwise(context.routines.rows.embedding, args, ids.elements(), table.last(),
                     context.num_threads);
}

// Parallel over columns, so that rows are added in order of position whatever the number of threads.
KernelOr MakeEmbeddingGrad(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 3, 1));
  const Tensor &ids = context.in(0), &dy = context.in(1), &acc = context.in(2), &r = context.out(0);
  FT_RETURN_IF_ERROR(CheckPresent(ids, "ids", DType::kI32));
  FT_RETURN_IF_ERROR(CheckPresent(r, "dtable"));
  FT_RETURN_IF_ERROR(CheckSize(dy, "dy", ids.elements() * r.last()));
  if (acc.present()) FT_RETURN_IF_ERROR(CheckSameShape(acc, "acc", r));
  FT_RETURN_IF_ERROR(CheckAccumulator(acc, r));
  const EmbeddingGradArgs args = {ids.as<int32_t>(), dy.as<float>(), r.as<float>(),
                                  ids.elements(),    r.rows(),       r.last()};
  const int64_t column_grain = 128;
  return MakeKernel([=, &routines = context.routines, clear = !acc.present(), elements = r.elements(),
                     num_threads = context.num_threads] {
    if (clear) {
      ParallelRanges(elements, kGrain, ThreadsFor(num_threads, elements), [&](int64_t begin, int64_t end) {
        routines.optimizer.fill(args.dtable, 0.0f, begin, end);
      });
    }
    ParallelRanges(args.columns, column_grain, ThreadsFor(num_threads, args.rows * args.columns),
                   [&](int64_t begin, int64_t end) { routines.rows.embedding_grad(args, begin, end); });
  });
}

}  // namespace

void RegisterEmbedding(KernelRegistry& registry, Isa isa) {
  Add<MakeEmbedding>(registry, "embedding", isa);
  Add<MakeEmbeddingGrad>(registry, "embedding_grad", isa);
}

}  // namespace ft::cpu
