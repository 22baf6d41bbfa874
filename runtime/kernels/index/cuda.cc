// gather_elements, scatter_add_elements, cumsum, argsort, histogram.
#include "runtime/backends/cuda/register.h"
#include "runtime/kernels/index/cuda_device.h"
#include "runtime/kernels/index/operands.h"

namespace ft::cuda {
namespace {

KernelOr MakeGatherElements(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const ElementsByIds operands, CheckGatherElements(context.operands));
  const ElementsArgs args = {.x = operands.x,
                             .ids = operands.ids,
                             .r = operands.result,
                             .result = operands.result_dtype,
                             .rows = operands.rows,
                             .x_columns = operands.other_columns,
                             .r_columns = operands.ids_columns};
  return MakeKernel([args, bytes = static_cast<int>(SizeOf(operands.dtype))](StreamHandle stream) {
    return GatherElements(args, bytes, stream);
  });
}

KernelOr MakeScatterAddElements(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const ElementsByIds operands, CheckScatterAddElements(context.operands));
  const ElementsArgs args = {.x = operands.x,
                             .ids = operands.ids,
                             .r = operands.result,
                             .result = operands.result_dtype,
                             .rows = operands.rows,
                             .x_columns = operands.ids_columns,
                             .r_columns = operands.other_columns};
  return MakeKernel([args, dtype = operands.dtype](StreamHandle stream) {
    return ScatterAddElements(args, dtype, stream);
  });
}

RowsArgs RowsOf(const RowScan& scan) {
  return {.x = scan.x,
          .r = scan.result,
          .result = scan.result_dtype,
          .rows = scan.rows,
          .columns = scan.columns,
          .r_columns = scan.result_columns,
          .backwards = scan.backwards};
}

KernelOr MakeCumsum(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const RowScan scan, CheckCumsum(context.operands, context.attributes));
  return MakeKernel(
      [args = RowsOf(scan), dtype = scan.dtype](StreamHandle stream) { return Cumsum(args, dtype, stream); });
}

KernelOr MakeArgsort(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const RowScan scan, CheckArgsort(context.operands, context.attributes));
  return MakeKernel([args = RowsOf(scan), dtype = scan.dtype](StreamHandle stream) {
    return Argsort(args, dtype, stream);
  });
}

KernelOr MakeHistogram(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const ft::Histogram operands, CheckHistogram(context.operands));
  const HistogramArgs args = {operands.ids, operands.result, operands.elements, operands.counts};
  return MakeKernel([args](StreamHandle stream) { return Histogram(args, stream); });
}

}  // namespace

void RegisterIndex(KernelTable& table) {
  table.Add("gather_elements", &MakeGatherElements);
  table.Add("scatter_add_elements", &MakeScatterAddElements);
  table.Add("cumsum", &MakeCumsum);
  table.Add("argsort", &MakeArgsort);
  table.Add("histogram", &MakeHistogram);
}

}  // namespace ft::cuda
