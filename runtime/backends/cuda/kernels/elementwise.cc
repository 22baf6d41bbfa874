// add, mul, scale.
#include "runtime/backends/cuda/routines/elementwise.h"

#include "fmt/format.h"
#include "runtime/backends/cuda/kernels/primitives.h"
#include "runtime/backends/cuda/register.h"
#include "runtime/device/elementwise_operands.h"

namespace ft::cuda {
namespace {

// Floats of one type, a in the shape of the result: what there are faster kernels for.
template <Elementwise kKind, int (*kRoutine)(const BinaryArgs&, DType, StreamHandle)>
KernelOr MakeBinary(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const ElementwiseOperands operands,
                      CheckElementwise(RowOf(kKind), context.operands, context.attributes));
  const ElementwiseOperand &a = operands.in[0], &b = operands.in[1];
  const bool of_one_type = a.dtype == b.dtype && a.dtype == operands.result_dtype;
  const bool in_period = b.period == operands.elements || b.period < int64_t{1} << 31;
  if (!operands.of_floats || !of_one_type || a.period != operands.elements || !in_period)
    return MakePrimitive(RowOf(kKind), context);
  const BinaryArgs args = {a.data, b.data, operands.result, operands.elements, b.period};
  return MakeKernel([args, dtype = a.dtype](StreamHandle stream) { return kRoutine(args, dtype, stream); });
}

absl::StatusOr<UnaryArgs> CheckUnary(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 1, 1));
  const Tensor &x = context.in(0), &r = context.out(0);
  FT_RETURN_IF_ERROR(CheckFloat(x, "x"));
  FT_RETURN_IF_ERROR(CheckSameShape(r, "result", x));
  return UnaryArgs{x.data, r.data, x.elements()};
}

KernelOr MakeScale(const KernelContext& context) {
  if (context.operands.in.size() == 1 && context.operands.out.size() == 1 &&
      (!IsFloat(context.in(0).dtype) || context.in(0).dtype != context.out(0).dtype))
    return MakePrimitive(RowOf(Elementwise::kScale), context);
  FT_ASSIGN_OR_RETURN(const double factor, FloatIn(context.attributes, "factor"));
  FT_ASSIGN_OR_RETURN(const UnaryArgs args, CheckUnary(context));
  return MakeKernel([args, factor = static_cast<float>(factor), dtype = context.in(0).dtype](
                        StreamHandle stream) { return Scale(args, factor, dtype, stream); });
}

}  // namespace

void RegisterElementwise(KernelTable& table) {
  table.Add("add", &MakeBinary<Elementwise::kAdd, Add>);
  table.Add("mul", &MakeBinary<Elementwise::kMul, Mul>);
  table.Add("scale", &MakeScale);
}

}  // namespace ft::cuda
