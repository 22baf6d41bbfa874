// add, mul, scale.
#include "runtime/backends/cpu/routines/elementwise.h"

#include "fmt/format.h"
#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/kernels/primitives.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/device/elementwise_operands.h"

namespace ft::cpu {
namespace {

// Floats of one type, a in the shape of the result: what there are loops without copies for.
KernelOr MakeBinary(const KernelContext& context, Elementwise kind,
                    void (*const routines[kFloatTypes])(const BinaryArgs&, int64_t, int64_t)) {
  FT_ASSIGN_OR_RETURN(const ElementwiseOperands operands,
                      CheckElementwise(RowOf(kind), context.operands, context.attributes));
  const ElementwiseOperand &a = operands.in[0], &b = operands.in[1];
  if (!operands.of_floats || a.dtype != b.dtype || a.dtype != operands.result_dtype ||
      a.period != operands.elements)
    return MakePrimitive(RowOf(kind), context);
  const BinaryArgs args = {a.data, b.data, operands.result, b.period};
  return MakeElementwise(routines[FloatIndex(a.dtype)], args, operands.elements, context.num_threads);
}

KernelOr MakeAdd(const KernelContext& context) {
  return MakeBinary(context, Elementwise::kAdd, context.routines.elementwise.add);
}
KernelOr MakeMul(const KernelContext& context) {
  return MakeBinary(context, Elementwise::kMul, context.routines.elementwise.mul);
}

KernelOr MakeScale(const KernelContext& context) {
  if (context.operands.in.size() == 1 && context.operands.out.size() == 1 &&
      (!IsFloat(context.in(0).dtype) || context.in(0).dtype != context.out(0).dtype))
    return MakePrimitive(RowOf(Elementwise::kScale), context);
  FT_ASSIGN_OR_RETURN(const double factor, FloatIn(context.attributes, "factor"));
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 1, 1));
  const Tensor &x = context.in(0), &r = context.out(0);
  FT_RETURN_IF_ERROR(CheckFloat(x, "x"));
  FT_RETURN_IF_ERROR(CheckSameShape(r, "result", x));
  const UnaryArgs args = {x.data, r.data, static_cast<float>(factor)};
  return MakeElementwise(context.routines.elementwise.scale[FloatIndex(x.dtype)], args, x.elements(),
                         context.num_threads);
}

}  // namespace

void RegisterElementwise(KernelRegistry& registry, Isa isa) {
  Add<MakeAdd>(registry, "add", isa);
  Add<MakeMul>(registry, "mul", isa);
  Add<MakeScale>(registry, "scale", isa);
}

}  // namespace ft::cpu
