#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/backends/cpu/routines/rows.h"
#include "runtime/backends/cpu/row_blocks.h"
#include "runtime/base/workspace.h"

namespace ft::cpu {
namespace {

// Columns that one piece of work sums.
constexpr int64_t kSumColumns = 512;

KernelOr MakeSumLeading(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 1, 1));
  const Tensor &x = context.in(0), &r = context.out(0);
  FT_RETURN_IF_ERROR(CheckFloat(x, "x"));
  FT_RETURN_IF_ERROR(CheckFloat(r, "result"));
  const int64_t columns = r.elements();
  if (columns == 0 || x.elements() % columns != 0) {
    return absl::InvalidArgumentError("the result's shape must be a suffix of x's");
  }
  FT_RETURN_IF_ERROR(CheckWorkspace(context.operands, SumLeadingWorkspace(columns)));
  const RowBlocks blocks(x.elements() / columns);
  const int threads = ThreadsFor(context.num_threads, x.elements());
  const int64_t column_blocks = (columns + kSumColumns - 1) / kSumColumns;
  const auto column_sum = context.routines.rows.column_sum[FloatIndex(x.dtype)];
  // A single block's sum is the result, unless it has to be rounded.
  const bool direct = blocks.count == 1 && r.dtype == DType::kF32;
  float* partials = context.operands.workspace.as<float>();
  return MakeKernel([=, &routines = context.routines, source = x.data, result = r] {
    ParallelFor(blocks.count * column_blocks, threads, [&](int64_t piece) {
      const int64_t block = piece / column_blocks, begin = piece % column_blocks * kSumColumns;
      float* to = direct ? result.as<float>() : partials + block * columns;
      column_sum({source, columns, to}, blocks.Begin(block), blocks.Begin(block + 1), begin,
                 std::min(columns, begin + kSumColumns));
    });
    if (direct) return;
    ParallelRanges(columns, kSumColumns, ThreadsFor(threads, blocks.count * columns),
                   [&](int64_t begin, int64_t end) {
                     SumPartials(routines, partials, blocks.count, columns, begin, end, result);
                   });
  });
}

}  // namespace

void RegisterSumLeading(KernelRegistry& registry, Isa isa) {
  Add<MakeSumLeading>(registry, "sum_leading", isa);
}

}  // namespace ft::cpu
